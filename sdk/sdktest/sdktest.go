// Package sdktest is the contract of [sdk.Store]: every store of a profile runs
// it. It is test support and nothing else imports it.
package sdktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// Open opens the same store again and again: what one left, the next finds.
type Open func(t testing.TB) sdk.Store

// Run checks a store. fresh gives an Open for a new, empty store.
func Run(t *testing.T, fresh func(t *testing.T) Open) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Open)
	}{
		{"values", values}, {"scan", scanning}, {"an error undoes everything", undone}, {"what was updated is durable", durable},
		{"lines", lines}, {"a line is replaced by its id", replaced}, {"lines about a message", about}, {"search", search},
		{"what is deleted is not found", forgotten}, {"expiry", expiry},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, fresh(t)) })
	}
}

var (
	room  = delivery.RoomID{1, 2, 3, 4, 5, 6, 0x80, 7, 0x80, 9}
	other = delivery.RoomID{1, 2, 3, 4, 5, 6, 0x80, 7, 0x80, 10}
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func update(t *testing.T, s sdk.Store, f func(sdk.Tx) error) {
	t.Helper()
	must(t, s.Update(t.Context(), f))
}

func view(t *testing.T, s sdk.Store, f func(sdk.Tx) error) {
	t.Helper()
	must(t, s.View(t.Context(), f))
}

func with(t *testing.T, open Open) sdk.Store {
	s := open(t)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func values(t *testing.T, open Open) {
	s := with(t, open)
	update(t, s, func(tx sdk.Tx) error {
		must(t, tx.Put(sdk.TableSetting, "a", []byte("1")))
		must(t, tx.Put(sdk.TableSetting, "a", []byte("2")))
		must(t, tx.Put(sdk.TableSetting, "empty", nil))
		must(t, tx.Put(sdk.TableRoom, "a", []byte("3")))
		must(t, tx.Delete(sdk.TableRoom, "not there"))
		v, err := tx.Get(sdk.TableSetting, "a")
		must(t, err)
		if string(v) != "2" {
			t.Errorf("inside the transaction %q", v)
		}
		return nil
	})
	view(t, s, func(tx sdk.Tx) error {
		for _, c := range []struct {
			table sdk.Table
			key   string
			want  []byte
		}{{sdk.TableSetting, "a", []byte("2")}, {sdk.TableRoom, "a", []byte("3")}, {sdk.TableSetting, "b", nil}, {sdk.TableSetting, "empty", []byte{}}} {
			v, err := tx.Get(c.table, c.key)
			must(t, err)
			if string(v) != string(c.want) || (v == nil) != (c.want == nil) {
				t.Errorf("%s %s is %q, want %q", c.table, c.key, v, c.want)
			}
		}
		return nil
	})
}

func scanning(t *testing.T, open Open) {
	s := with(t, open)
	update(t, s, func(tx sdk.Tx) error {
		for n := range 1200 {
			must(t, tx.Put(sdk.TableRaw, fmt.Sprintf("x/%04d", n), []byte{byte(n)}))
		}
		for _, key := range []string{"x", "w/1", "y/1", "x0"} {
			must(t, tx.Put(sdk.TableRaw, key, []byte("other")))
		}
		return nil
	})
	view(t, s, func(tx sdk.Tx) error {
		next := 0
		must(t, tx.Scan(sdk.TableRaw, "x/", "", func(key string, value []byte) (bool, error) {
			if key != fmt.Sprintf("x/%04d", next) || value[0] != byte(next) {
				t.Fatalf("scan gives %q where %d should be", key, next)
			}
			next++
			return true, nil
		}))
		if next != 1200 {
			t.Errorf("scan gives %d of 1200", next)
		}
		var got []string
		must(t, tx.Scan(sdk.TableRaw, "x/", "x/1197", func(key string, _ []byte) (bool, error) {
			got = append(got, key)
			return len(got) < 1, nil
		}))
		if !slices.Equal(got, []string{"x/1198"}) {
			t.Errorf("after x/1197 comes %q", got)
		}
		stop := errors.New("stop")
		if err := tx.Scan(sdk.TableRaw, "", "", func(string, []byte) (bool, error) { return true, stop }); !errors.Is(err, stop) {
			t.Errorf("the function's error came back as %v", err)
		}
		return nil
	})
}

func undone(t *testing.T, open Open) {
	s := with(t, open)
	update(t, s, func(tx sdk.Tx) error { return tx.Put(sdk.TableSetting, "a", []byte("before")) })
	broken := errors.New("broken")
	err := s.Update(t.Context(), func(tx sdk.Tx) error {
		must(t, tx.Put(sdk.TableSetting, "a", []byte("after")))
		must(t, tx.PutLine(line(1, "lost")))
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("the function's error came back as %v", err)
	}
	view(t, s, func(tx sdk.Tx) error {
		v, err := tx.Get(sdk.TableSetting, "a")
		must(t, err)
		if _, found, err := tx.LineAt(room, 1); err != nil || found || string(v) != "before" {
			t.Errorf("half of it is there: %q, a line: %v, %v", v, found, err)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Update(ctx, func(tx sdk.Tx) error { return tx.Put(sdk.TableSetting, "a", nil) }); err == nil {
		t.Error("an ended context updates")
	}
}

func durable(t *testing.T, open Open) {
	s := open(t)
	update(t, s, func(tx sdk.Tx) error {
		must(t, tx.Put(sdk.TableSetting, "a", []byte("kept")))
		return tx.PutLine(line(3, "kept too"))
	})
	must(t, s.Close())
	s = with(t, open)
	view(t, s, func(tx sdk.Tx) error {
		v, err := tx.Get(sdk.TableSetting, "a")
		must(t, err)
		l, found, err := tx.LineAt(room, 3)
		must(t, err)
		if string(v) != "kept" || !found || l.Text != "kept too" {
			t.Errorf("opened again it has %q and %+v", v, l)
		}
		return nil
	})
}

func id(n uint64) content.MessageID { return content.MessageID{1, byte(n >> 8), byte(n)} }

func line(seq uint64, text string) sdk.Line {
	return sdk.Line{Room: room, Seq: seq, ID: id(seq), Kind: sdk.LineText, Text: text, TimeMS: int64(seq)}
}

func texts(list []sdk.Line) []string {
	out := []string{}
	for _, l := range list {
		out = append(out, l.Text)
	}
	return out
}

func want(t *testing.T, got []sdk.Line, err error, text ...string) {
	t.Helper()
	must(t, err)
	if !slices.Equal(texts(got), text) {
		t.Errorf("got %q, want %q", texts(got), text)
	}
}

func lines(t *testing.T, open Open) {
	s := with(t, open)
	update(t, s, func(tx sdk.Tx) error {
		for _, seq := range []uint64{5, 1, 3, 2, 4} {
			must(t, tx.PutLine(line(seq, fmt.Sprint(seq))))
		}
		elsewhere := line(3, "elsewhere")
		elsewhere.Room = other
		return tx.PutLine(elsewhere)
	})
	view(t, s, func(tx sdk.Tx) error {
		got, err := tx.Lines(sdk.LineQuery{Room: room})
		want(t, got, err, "1", "2", "3", "4", "5")
		got, err = tx.Lines(sdk.LineQuery{Room: room, After: 1, Upto: 4})
		want(t, got, err, "2", "3", "4")
		got, err = tx.Lines(sdk.LineQuery{Room: room, Limit: 2})
		want(t, got, err, "1", "2")
		got, err = tx.Lines(sdk.LineQuery{Room: room, Limit: 2, Last: true})
		want(t, got, err, "4", "5")
		got, err = tx.Lines(sdk.LineQuery{Room: other})
		want(t, got, err, "elsewhere")
		l, found, err := tx.Line(room, id(3))
		must(t, err)
		if !found || l.Text != "3" || l.TimeMS != 3 || l.ID != id(3) || l.Room != room {
			t.Errorf("line 3 is %+v", l)
		}
		if _, found, err := tx.Line(other, id(4)); err != nil || found {
			t.Errorf("a line of another room: %v %v", found, err)
		}
		return nil
	})
}

func replaced(t *testing.T, open Open) {
	s := with(t, open)
	update(t, s, func(tx sdk.Tx) error {
		must(t, tx.PutLine(line(1, "first words")))
		l := line(1, "second thoughts")
		l.Edited = true
		return tx.PutLine(l)
	})
	view(t, s, func(tx sdk.Tx) error {
		got, err := tx.Lines(sdk.LineQuery{Room: room})
		want(t, got, err, "second thoughts")
		got, err = tx.Search("first", nil, 10)
		want(t, got, err)
		got, err = tx.Search("second", nil, 10)
		want(t, got, err, "second thoughts")
		return nil
	})
}

func about(t *testing.T, open Open) {
	s := with(t, open)
	update(t, s, func(tx sdk.Tx) error {
		must(t, tx.PutLine(line(1, "message")))
		r := line(2, "👍")
		r.Kind, r.Target = sdk.LineReaction, id(1)
		must(t, tx.PutLine(r))
		return tx.PutLine(line(3, "another"))
	})
	view(t, s, func(tx sdk.Tx) error {
		target := id(1)
		got, err := tx.Lines(sdk.LineQuery{Room: room, Target: &target})
		want(t, got, err, "👍")
		return nil
	})
}

func search(t *testing.T, open Open) {
	s := with(t, open)
	said := []string{"Tea at five?", "Чай в пять?", "お茶は五時？", `100% "sure" that x_y AND z*`, "TEAPOT"}
	update(t, s, func(tx sdk.Tx) error {
		for n, text := range said {
			must(t, tx.PutLine(line(uint64(n+1), text)))
		}
		event := line(99, "tea party")
		event.Kind = sdk.LineTitle
		must(t, tx.PutLine(event))
		elsewhere := line(1, "tea elsewhere")
		elsewhere.Room = other
		return tx.PutLine(elsewhere)
	})
	view(t, s, func(tx sdk.Tx) error {
		got, err := tx.Search("tea", &room, 10)
		want(t, got, err, "TEAPOT", "Tea at five?")
		got, err = tx.Search("tea", nil, 1)
		want(t, got, err, "tea elsewhere")
		got, err = tx.Search("пять", nil, 10)
		want(t, got, err, "Чай в пять?")
		got, err = tx.Search("五時", nil, 10)
		want(t, got, err, "お茶は五時？")
		for _, odd := range []string{`"sure"`, "x_y", "100%", "z*", "y AND z"} {
			got, err = tx.Search(odd, nil, 10)
			want(t, got, err, said[3])
		}
		got, err = tx.Search("coffee", nil, 10)
		want(t, got, err)
		return nil
	})
}

func forgotten(t *testing.T, open Open) {
	s := with(t, open)
	update(t, s, func(tx sdk.Tx) error {
		must(t, tx.PutLine(line(1, "a secret")))
		must(t, tx.PutLine(line(2, "another secret")))
		must(t, tx.DeleteLine(room, id(1)))
		l := line(2, "")
		l.Deleted = true
		must(t, tx.PutLine(l))
		return tx.DeleteLine(room, id(77))
	})
	view(t, s, func(tx sdk.Tx) error {
		got, err := tx.Search("secret", nil, 10)
		want(t, got, err)
		got, err = tx.Lines(sdk.LineQuery{Room: room})
		want(t, got, err, "")
		return nil
	})
}

func expiry(t *testing.T, open Open) {
	s := with(t, open)
	update(t, s, func(tx sdk.Tx) error {
		for seq, expire := range map[uint64]int64{1: 0, 2: 100, 3: 200} {
			l := line(seq, strings.Repeat("x", int(seq)))
			l.ExpireMS = expire
			must(t, tx.PutLine(l))
		}
		return nil
	})
	view(t, s, func(tx sdk.Tx) error {
		got, err := tx.Lines(sdk.LineQuery{Room: room, Expire: 150})
		want(t, got, err, "xx")
		return nil
	})
}
