package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// tx implements [sdk.Tx]. Its context is that of the call it lives in.
type tx struct {
	ctx context.Context
	tx  *sql.Tx
}

func (t *tx) exec(query string, args ...any) error {
	if _, err := t.tx.ExecContext(t.ctx, query, args...); err != nil {
		return fmt.Errorf("the profile's store: %w", err)
	}
	return nil
}

// Get implements [sdk.Tx].
func (t *tx) Get(part sdk.Table, key string) ([]byte, error) {
	var v []byte
	err := t.tx.QueryRowContext(t.ctx, "SELECT value FROM rows WHERE part = ? AND key = ?", string(part), key).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the profile's store: %w", err)
	}
	if v == nil {
		v = []byte{}
	}
	return v, nil
}

// Put implements [sdk.Tx].
func (t *tx) Put(part sdk.Table, key string, value []byte) error {
	if value == nil {
		value = []byte{}
	}
	return t.exec("INSERT INTO rows (part, key, value) VALUES (?, ?, ?) ON CONFLICT (part, key) DO UPDATE SET value = excluded.value", string(part), key, value)
}

// Delete implements [sdk.Tx].
func (t *tx) Delete(part sdk.Table, key string) error {
	return t.exec("DELETE FROM rows WHERE part = ? AND key = ?", string(part), key)
}

// scanPage bounds how many rows are in memory at once.
const scanPage = 500

// Scan implements [sdk.Tx].
func (t *tx) Scan(part sdk.Table, prefix, after string, f func(string, []byte) (bool, error)) error {
	after = max(after, prefix)
	inclusive := after == prefix // a key that is the prefix itself counts
	for {
		page, err := t.page(part, after, inclusive)
		if err != nil {
			return err
		}
		for _, r := range page {
			if !strings.HasPrefix(r.key, prefix) {
				return nil
			}
			if more, err := f(r.key, r.value); err != nil || !more {
				return err
			}
			after, inclusive = r.key, false
		}
		if len(page) < scanPage {
			return nil
		}
	}
}

type row struct {
	key   string
	value []byte
}

func (t *tx) page(part sdk.Table, after string, inclusive bool) (out []row, err error) {
	op := ">"
	if inclusive {
		op = ">="
	}
	rows, err := t.tx.QueryContext(t.ctx, "SELECT key, value FROM rows WHERE part = ? AND key "+op+" ? ORDER BY key LIMIT ?", string(part), after, scanPage)
	if err != nil {
		return nil, fmt.Errorf("the profile's store: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.key, &r.value); err != nil {
			return nil, fmt.Errorf("the profile's store: %w", err)
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// PutLine implements [sdk.Tx].
func (t *tx) PutLine(l sdk.Line) error {
	body, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("the profile's store: encode a line: %w", err)
	}
	var target any
	if !l.Target.IsZero() {
		target = l.Target[:]
	}
	var n int64
	err = t.tx.QueryRowContext(t.ctx, `INSERT INTO lines (room, id, seq, target, expire, body) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (room, id) DO UPDATE SET seq = excluded.seq, target = excluded.target, expire = excluded.expire, body = excluded.body
		RETURNING n`, l.Room[:], l.ID[:], int64(l.Seq), target, l.ExpireMS, body).Scan(&n)
	if err != nil {
		return fmt.Errorf("the profile's store: %w", err)
	}
	if err := t.exec("DELETE FROM words WHERE rowid = ?", n); err != nil {
		return err
	}
	if !l.Kind.Conversation() || l.Text == "" {
		return nil
	}
	return t.exec("INSERT INTO words (rowid, text) VALUES (?, ?)", n, l.Text)
}

// DeleteLine implements [sdk.Tx].
func (t *tx) DeleteLine(room delivery.RoomID, id content.MessageID) error {
	if err := t.exec("DELETE FROM words WHERE rowid IN (SELECT n FROM lines WHERE room = ? AND id = ?)", room[:], id[:]); err != nil {
		return err
	}
	return t.exec("DELETE FROM lines WHERE room = ? AND id = ?", room[:], id[:])
}

// Line implements [sdk.Tx].
func (t *tx) Line(room delivery.RoomID, id content.MessageID) (sdk.Line, bool, error) {
	return first(t.lines("SELECT body FROM lines WHERE room = ? AND id = ?", room[:], id[:]))
}

// LineAt implements [sdk.Tx].
func (t *tx) LineAt(room delivery.RoomID, seq uint64) (sdk.Line, bool, error) {
	return first(t.lines("SELECT body FROM lines WHERE room = ? AND seq = ? ORDER BY n LIMIT 1", room[:], int64(seq)))
}

func first(list []sdk.Line, err error) (sdk.Line, bool, error) {
	if err != nil || len(list) == 0 {
		return sdk.Line{}, false, err
	}
	return list[0], true, nil
}

// Lines implements [sdk.Tx].
func (t *tx) Lines(q sdk.LineQuery) ([]sdk.Line, error) {
	query, args := "SELECT body FROM lines WHERE room = ? AND seq > ?", []any{q.Room[:], int64(q.After)}
	if q.Upto > 0 {
		query, args = query+" AND seq <= ?", append(args, int64(q.Upto))
	}
	if q.Target != nil {
		query, args = query+" AND target = ?", append(args, q.Target[:])
	}
	if q.Expire > 0 {
		query, args = query+" AND expire > 0 AND expire < ?", append(args, q.Expire)
	}
	order := " ORDER BY seq, n"
	if q.Last {
		order = " ORDER BY seq DESC, n DESC"
	}
	limit := q.Limit
	if limit == 0 {
		limit = 10_000
	}
	out, err := t.lines(query+order+" LIMIT ?", append(args, limit)...)
	if q.Last {
		slices.Reverse(out)
	}
	return out, err
}

// Search implements [sdk.Tx].
func (t *tx) Search(text string, room *delivery.RoomID, limit int) ([]sdk.Line, error) {
	var query string
	var args []any
	if utf8.RuneCountInString(text) >= 3 {
		query = "SELECT l.body FROM words w JOIN lines l ON l.n = w.rowid WHERE w.text MATCH ?"
		args = append(args, `"`+strings.ReplaceAll(text, `"`, `""`)+`"`)
	} else {
		query = "SELECT l.body FROM words w JOIN lines l ON l.n = w.rowid WHERE w.text LIKE ? ESCAPE '\\'"
		args = append(args, "%"+strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text)+"%")
	}
	if room != nil {
		query, args = query+" AND l.room = ?", append(args, room[:])
	}
	return t.lines(query+" ORDER BY l.n DESC LIMIT ?", append(args, limit)...)
}

func (t *tx) lines(query string, args ...any) (out []sdk.Line, err error) {
	rows, err := t.tx.QueryContext(t.ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("the profile's store: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return nil, fmt.Errorf("the profile's store: %w", err)
		}
		var l sdk.Line
		if err := json.Unmarshal(body, &l); err != nil {
			return nil, fmt.Errorf("the profile's store: a line cannot be read: %w", err)
		}
		out = append(out, l)
	}
	return out, rows.Err()
}
