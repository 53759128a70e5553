package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"strconv"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// append adds one entry to a room: the first of the service's files that a
// message passes (then room.go, the store, fanout.go, socket.go).
func (s *Server) append(c *call) error {
	id, err := s.room(c)
	if err != nil {
		return err
	}
	req, err := delivery.ParseAppend(c.body)
	if err != nil {
		return bad("the body is not an AppendRequest")
	}
	in, err := parseEntry(id, req)
	if err != nil {
		return err
	}
	in.device = c.who.Device
	if err := s.checkWork(in.device.ID, in.hash, len(req.Entry), c.r.Header.Get(delivery.HeaderWork)); err != nil {
		return err
	}
	if err := s.mayRefer(c, in); err != nil {
		return err
	}
	acc, err := s.Append(c, in)
	if err != nil {
		s.metrics.refusal(err)
		return err
	}
	return c.send("application/json", appendAccepted(make([]byte, 0, 96), acc))
}

// appendAccepted writes delivery.Accepted as JSON without reflection.
func appendAccepted(b []byte, a delivery.Accepted) []byte {
	b = strconv.AppendUint(append(b, `{"seq":"`...), a.Seq, 10)
	b = strconv.AppendUint(append(b, `","epoch":"`...), a.Epoch, 10)
	b = strconv.AppendInt(append(b, `","accepted_ms":`...), a.AcceptedMS, 10)
	if a.Duplicate {
		b = append(b, `,"duplicate":true`...)
	}
	return append(b, '}')
}

// incoming is an append whose form is right: an MLSMessage of this room.
type incoming struct {
	room    delivery.RoomID
	device  delivery.Device
	request delivery.AppendRequest
	kind    delivery.EntryKind
	epoch   uint64
	hash    [32]byte
	public  *wire.PublicMessage // proposals and commits
	welcome *wire.Welcome       // with a commit that adds
	info    *wire.GroupInfo     // with every commit
	old     *old                // an entry from before a restore; nil = a new one
}

// parseEntry decodes an append: application messages are PrivateMessages and
// handshakes PublicMessages (anything else is refused), and what belongs to a
// commit comes with a commit only.
func parseEntry(room delivery.RoomID, req delivery.AppendRequest) (*incoming, error) {
	in, err := decodeEntry(room, req)
	if err != nil {
		return nil, err
	}
	return in, in.parseCommitParts()
}

func decodeEntry(room delivery.RoomID, req delivery.AppendRequest) (*incoming, error) {
	in := &incoming{room: room, request: req, hash: sha256.Sum256(req.Entry)}
	var m wire.MLSMessage
	// Decoded in place: the request's bytes are this call's alone.
	r := wire.NewReader(req.Entry)
	m.DecodeFrom(r)
	if r.Finish() != nil {
		return nil, bad("the entry is not an MLSMessage")
	}
	var group []byte
	switch m.WireFormat {
	case wire.WireFormatPrivateMessage:
		if m.PrivateMessage.ContentType != wire.ContentTypeApplication {
			return nil, bad("handshakes travel as PublicMessage")
		}
		in.kind, in.epoch, group = delivery.KindApplication, m.PrivateMessage.Epoch, m.PrivateMessage.GroupID
	case wire.WireFormatPublicMessage:
		content := &m.PublicMessage.Content
		in.public, in.epoch, group = m.PublicMessage, content.Epoch, content.GroupID
		switch content.ContentType {
		case wire.ContentTypeProposal:
			in.kind = delivery.KindProposal
		case wire.ContentTypeCommit:
			in.kind = delivery.KindCommit
		default:
			return nil, bad("application messages travel as PrivateMessage")
		}
	default:
		return nil, bad("the entry is neither a PrivateMessage nor a PublicMessage")
	}
	if string(group) != string(room[:]) {
		return nil, bad("the entry is of another group than this room")
	}
	return in, nil
}

func (in *incoming) parseCommitParts() error {
	if in.kind != delivery.KindCommit {
		if len(in.request.Welcome) > 0 || len(in.request.GroupInfo) > 0 {
			return bad("Welcome and GroupInfo come with a commit only")
		}
		return nil
	}
	if len(in.request.Blobs) > 0 {
		return bad("a commit refers to no blobs")
	}
	if err := in.parseInfo(); err != nil {
		return err
	}
	if len(in.request.Welcome) == 0 {
		return nil
	}
	var w wire.MLSMessage
	if wire.Unmarshal(in.request.Welcome, &w) != nil || w.WireFormat != wire.WireFormatWelcome {
		return bad("the Welcome is not an MLSMessage with a Welcome")
	}
	in.welcome = w.Welcome
	return nil
}

func (in *incoming) parseInfo() error {
	var m wire.MLSMessage
	if wire.Unmarshal(in.request.GroupInfo, &m) != nil || m.WireFormat != wire.WireFormatGroupInfo {
		return bad("a commit comes with the GroupInfo of the new epoch as an MLSMessage")
	}
	in.info = m.GroupInfo
	return nil
}

// maxTries bounds how often a handshake is verified anew because the room
// moved on between the check and the lock.
const maxTries = 8

// errMoved says that the room is not what the handshake was checked against.
var errMoved = errors.New("server: the room moved on")

// Append runs one entry through the room's rules and rings for it. Handshakes
// are verified before the room is locked, against the follower state of the
// epoch; inside only what may have changed is compared. The same bytes of the
// same device get their first answer.
func (s *Server) Append(ctx context.Context, in *incoming) (delivery.Accepted, error) {
	for range maxTries {
		plan, err := s.prepare(ctx, in)
		var before *answered
		if errors.As(err, &before) {
			before.Duplicate = true
			return before.Accepted, nil
		}
		if err != nil {
			return delivery.Accepted{}, err
		}
		done, err := s.order(ctx, in, plan)
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return delivery.Accepted{}, err
		}
		if !done.accepted.Duplicate {
			s.appended(ctx, in, plan, done)
		}
		return done.accepted, nil
	}
	return delivery.Accepted{}, delivery.Refuse(delivery.CodeRetry, "the room is changing too fast: send the same bytes again")
}

// appended does what follows an entry that is durable: caches, rings, debts. Others
// wait for it, so it does not end with the request: a sender whose connection breaks
// after the commit is as good as one that reads the answer.
func (s *Server) appended(ctx context.Context, in *incoming, plan *plan, done outcome) {
	ctx = context.WithoutCancel(ctx)
	s.metrics.appends[in.kind].Inc()
	e := &delivery.Entry{Seq: done.accepted.Seq, Epoch: in.epoch, Kind: in.kind, AcceptedMS: done.accepted.AcceptedMS, Bytes: in.request.Entry}
	if in.kind != delivery.KindCommit {
		s.fanOut(ctx, in.room, e, nil)
		return
	}
	// Whom the ended epoch had hears of its commit, also who is removed by it.
	before := plan.before.devices()
	s.audience.put(&listeners{room: in.room, epoch: in.epoch, devices: before})
	s.follows.put(in.room, plan.after)
	added := make([]identity.DeviceID, len(plan.advance.Added))
	for i, m := range plan.advance.Added {
		added[i] = m.Device
	}
	s.fanOut(ctx, in.room, e, added)
	s.audience.put(&listeners{room: in.room, epoch: plan.after.epoch, devices: plan.after.devices()})
	if len(plan.advance.Joiners) > 0 {
		s.invite(ctx, in.room, plan.after.epoch, done.accepted.Seq, plan.advance.Joiners)
	}
	if plan.reissue {
		s.kicks.removals.kick()
	}
	if len(plan.advance.Removed) > 0 {
		s.later(ctx, func(ctx context.Context) { s.tellRemoved(ctx, in.room, done.accepted.Seq, plan.advance.Removed) })
	}
	s.rebase(ctx, in.room, plan.after)
}

// tellRemoved notes in the mailboxes of removed devices that they are out. They
// can also read it from the log, whose last entry for them is the removal.
func (s *Server) tellRemoved(ctx context.Context, room delivery.RoomID, seq uint64, devices []identity.DeviceID) {
	for _, d := range devices {
		item := delivery.MailItem{Kind: delivery.MailRemoved, Room: room, StartSeq: seq, CreatedMS: s.nowMS(), Key: "removed:" + room.String() + ":" + strconv.FormatUint(seq, 10)}
		s.failed("telling of a removal", s.mail(ctx, d, item))
	}
}
