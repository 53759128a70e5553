package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/store/batch"
)

// Group commit (package batch). Rooms are spread over a few lanes, each one
// goroutine. A lane commits what waits as one transaction (group.go).
//
// When the database refuses the group (a conflict with another instance, a full
// disk), each piece runs once more in a transaction of its own.

const (
	laneCount = 4  // measured on two cores: more lanes fight for them, fewer wait for flushes
	maxBatch  = 64 // bounds how long rows stay locked, about 10 ms
)

// work is a transaction on one room.
type work struct {
	id  delivery.RoomID
	run func(delivery.RoomTx) error
}

type piece = batch.Piece[work]

type lanes struct {
	pool *pgxpool.Pool
	all  [laneCount]*batch.Lane[work]
}

func startLanes(pool *pgxpool.Pool) *lanes {
	l := &lanes{pool: pool}
	for i := range l.all {
		l.all[i] = batch.Start[work](l, maxBatch, ErrClosed)
	}
	return l
}

func (l *lanes) do(ctx context.Context, id delivery.RoomID, run func(delivery.RoomTx) error) error {
	return l.all[id[15]%laneCount].Do(ctx, work{id, run}) // the last byte of a room id is random
}

func (l *lanes) close() {
	for _, lane := range l.all {
		lane.Close()
	}
}

// Together takes what waits and commits it.
func (l *lanes) Together(b *batch.Batch[work]) error {
	for b.Next() != nil {
		continue
	}
	return l.commit(b.Pieces())
}

// Alone gives a piece a transaction of its own.
func (l *lanes) Alone(p *piece) {
	for try := 1; ; try++ {
		p.Err, p.Panic = nil, nil
		err := l.commit([]*piece{p})
		if err != nil {
			p.Err, p.Panic = translate(err), nil
		}
		if try == tries || !conflict(err) {
			return
		}
	}
}

// commit runs the pieces in one transaction. An error means that nothing of it
// was committed.
func (l *lanes) commit(pieces []*piece) (err error) {
	ctx, cancel := lasting(context.Background())
	defer cancel()
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // which closes a connection that is still in a transaction
	g := &group{ctx: ctx, conn: conn.Conn(), rooms: make(map[delivery.RoomID]*lockedRoom, len(pieces))}
	defer func() {
		if err != nil && !g.conn.IsClosed() {
			_, e := g.conn.Exec(ctx, "ROLLBACK")
			err = errors.Join(err, e)
		}
	}()
	if err := g.begin(pieces); err != nil {
		return err
	}
	if err := g.run(pieces); err != nil {
		return err
	}
	return g.commit()
}
