package sdk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

func (p *person) has(room delivery.RoomID, want []string) {
	p.t.Helper()
	if got := p.read(room); !slices.Equal(got, want) {
		p.t.Fatalf("%s reads\n%q\nwant\n%q", p.Name(), got, want)
	}
}

func (p *person) past(room delivery.RoomID) sdk.Past {
	p.t.Helper()
	past, err := p.PastOf(p.t.Context(), room)
	must(p.t, err)
	return past
}

// disappear sends a message that wants to be forgotten in an hour.
func (p *person) disappear(room delivery.RoomID, text string) {
	p.t.Helper()
	_, err := p.Write(p.t.Context(), room, func(h content.Header) (content.Message, error) {
		h.Expires = &content.Expiration{Relative: true, Seconds: 3600}
		return content.New(h, content.Text{Text: text})
	})
	must(p.t, err)
}

// TestLinkedDeviceReadsThePast: what stands in a chat when a device is linked is on
// it: edits applied, deletions gone, nothing twice, nothing that was to disappear.
func TestLinkedDeviceReadsThePast(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Past")
	must(t, err)
	ada.say(room, "alone")
	ada.invite(room, bob)
	first := ada.say(room, "first, with a mistake")
	_, err = ada.Edit(ctx, room, first.Seq, "first")
	must(t, err)
	gone := bob.say(room, "regretted")
	ada.read(room)
	_, err = bob.Delete(ctx, room, gone.Seq)
	must(t, err)
	_, err = bob.React(ctx, room, first.Seq, "🫖")
	must(t, err)
	ada.disappear(room, "for an hour")
	reply, err := bob.Send(ctx, room, sdk.Draft{Text: "a reply", ReplyTo: first.ID})
	must(t, err)

	phone := ada.linked("phone")
	want := []string{"alone", "first", "a reply"}
	phone.has(room, want)
	if found, err := phone.Search(ctx, "a reply", nil, 10); err != nil || len(found) != 1 || found[0].Seq != reply.Seq || found[0].ReplyTo != first.ID {
		t.Fatalf("found %+v, %v", found, err)
	}
	if found, err := phone.Search(ctx, "regretted", nil, 10); err != nil || len(found) != 0 {
		t.Fatalf("a deleted message is found: %+v, %v", found, err)
	}
	lines, err := phone.History(ctx, room, 0, 0, true)
	must(t, err)
	if !slices.ContainsFunc(lines, func(l sdk.Line) bool { return l.Kind == sdk.LineReaction && l.Text == "🫖" && l.Target == first.ID }) {
		t.Error("the reaction is not here")
	}
	past := phone.past(room)
	if past.Before == 0 || past.From != 1 || len(past.Missing)+len(past.Withheld) != 0 || past.Going {
		t.Fatalf("%+v", past)
	}
	// It goes on together: an edit of what was said before, a deletion, a new word.
	_, err = ada.Edit(ctx, room, first.Seq, "first, again")
	must(t, err)
	phone.say(room, "from the phone")
	want = []string{"alone", "first, again", "a reply", "from the phone"}
	must(t, phone.Sync(ctx))
	phone.has(room, want)
	ada.has(room, []string{"alone", "first, again", "for an hour", "a reply", "from the phone"})
	phone.restart()
	must(t, phone.ForgetHistory(ctx))
	must(t, phone.Sync(ctx))
	phone.has(room, want)
}

// TestThePastFromThePhrase: the phrase alone shows what a lost device had archived,
// and says what it cannot show.
func TestThePastFromThePhrase(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := bob.NewRoom(ctx, "Theirs")
	must(t, err)
	bob.say(room, "before ada")
	bob.invite(room, ada)
	var want []string
	for i := range 300 { // more than two blocks
		text := fmt.Sprintf("word %d", i)
		if i%50 == 0 {
			bob.say(room, text)
			ada.read(room)
		} else {
			ada.say(room, text)
		}
		want = append(want, text)
	}
	n, err := ada.Archive(ctx)
	if err != nil || n != 3 {
		t.Fatalf("%d segments, %v", n, err)
	}
	if n, err := ada.Archive(ctx); err != nil || n != 0 {
		t.Fatalf("nothing new, and %d segments, %v", n, err)
	}
	lost := ada.say(room, "never archived")

	next := ada.restored(h, "next")
	next.has(room, want)
	past := next.past(room)
	if !slices.Equal(past.Missing, []sdk.Span{{From: lost.Seq, To: past.Before - 1}}) || past.From < 2 || len(past.Withheld) != 0 {
		t.Fatalf("%+v, lost at %d", past, lost.Seq)
	}
	// Another device of the account has nothing to add to what stands there.
	if n, err := next.Archive(ctx); err != nil || n > 1 {
		t.Fatalf("%d segments, %v", n, err)
	}
	// The first device archives what it alone has, and the new one finds it.
	if _, err := ada.Archive(ctx); err != nil {
		t.Fatal(err)
	}
	must(t, next.ForgetHistory(ctx))
	must(t, next.Sync(ctx))
	next.has(room, append(want, "never archived"))
	if past := next.past(room); len(past.Missing)+len(past.Withheld) != 0 {
		t.Fatalf("%+v", past)
	}
}

// TestDevicesShareTheArchive: devices that came at different times write one block
// without taking from each other, and not twice what is there.
func TestDevicesShareTheArchive(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	room, err := ada.NewRoom(ctx, "Shared")
	must(t, err)
	ada.say(room, "one")
	tablet := ada.linked("tablet")
	tablet.say(room, "two")
	ada.say(room, "three")
	for _, p := range []*person{tablet, ada} {
		must(t, p.Sync(ctx))
		if n, err := p.Archive(ctx); err != nil || p == tablet && n != 1 || p == ada && n > 1 {
			t.Fatalf("%d segments, %v", n, err)
		}
	}
	if n, err := tablet.Archive(ctx); err != nil || n != 0 {
		t.Fatalf("%d segments once more, %v", n, err)
	}
	ada.restored(h, "new").has(room, []string{"one", "two", "three"})
	// After a revocation the same block is sealed anew, and what was before stays.
	must(t, ada.Revoke(ctx, tablet.Device(), nil))
	ada.say(room, "four")
	if n, err := ada.Archive(ctx); err != nil || n != 1 {
		t.Fatalf("%d segments, %v", n, err)
	}
	ada.linked("watch").has(room, []string{"one", "two", "three", "four"})
}

// TestTheArchiveFillsAGap: what a device missed and a sibling has read is shown in
// the place of the line that told of the gap.
func TestTheArchiveFillsAGap(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	room, err := ada.NewRoom(ctx, "Gap")
	must(t, err)
	ada.say(room, "one")
	tablet := ada.linked("tablet")
	tablet.has(room, []string{"one"})
	ada.say(room, "two")
	ada.say(room, "three")
	b := tablet.through()
	trimmed, err := json.Marshal((&delivery.Error{Code: delivery.CodeTrimmed, Detail: "past retention", Seq: 1000}).Problem())
	must(t, err)
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if strings.HasSuffix(path, room.String()+"/log") {
			b.answer = nil
			return 410, delivery.ProblemType, trimmed
		}
		return 0, "", nil
	}
	must(t, tablet.Refresh(ctx, room))
	if got := tablet.read(room); len(got) != 2 || !strings.HasPrefix(got[1], "!re-joined") {
		t.Fatalf("%q", got)
	}
	must(t, ada.Sync(ctx))
	if _, err := ada.Archive(ctx); err != nil {
		t.Fatal(err)
	}
	must(t, tablet.ForgetHistory(ctx))
	must(t, tablet.Sync(ctx))
	tablet.has(room, []string{"one", "two", "three"})
}

// archiveOf is the account's archive as the service keeps it.
func (p *person) archiveOf(h *home, b *between) map[string][]byte {
	p.t.Helper()
	var list delivery.ArchiveResponse
	must(p.t, json.Unmarshal(b.get(p, h.url, "/v1/archive"), &list))
	out := map[string][]byte{}
	for _, s := range list.Segments {
		out[s.Name] = b.get(p, h.url, "/v1/archive/"+s.Name)
	}
	return out
}

// TestAttackArchive: the service shows segments under each other's names, cut,
// changed, of before, endlessly and in no order. None of it becomes history, what
// is missing is named, and the device goes on.
func TestAttackArchive(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	b := ada.through()
	one, err := ada.NewRoom(ctx, "One")
	must(t, err)
	two, err := ada.NewRoom(ctx, "Two")
	must(t, err)
	ada.say(one, "in one")
	word := ada.say(two, "in two")
	_, err = ada.Archive(ctx)
	must(t, err)
	old := ada.archiveOf(h, b)
	_, err = ada.Edit(ctx, two, word.Seq, "in two, rightly")
	must(t, err)
	phone := ada.linked("phone")
	p := phone.through()
	phone.has(two, []string{"in two, rightly"})
	now := ada.archiveOf(h, b)
	if len(old) != 2 || len(now) != 2 {
		t.Fatalf("%d and %d segments", len(old), len(now))
	}
	var names []string
	for name := range now {
		names = append(names, name)
	}
	slices.Sort(names)
	other := func(name string) string {
		if name == names[0] {
			return names[1]
		}
		return names[0]
	}
	listed := func(list ...string) []byte {
		var r delivery.ArchiveResponse
		for _, name := range list {
			r.Segments = append(r.Segments, delivery.SegmentView{Name: name, Size: 1, CreatedMS: 1})
		}
		r.More = len(list) > 2
		raw, err := json.Marshal(r)
		must(t, err)
		return raw
	}
	for _, c := range []struct {
		what    string
		segment func(name string) []byte
		list    []byte
		one     bool // what is in the first room arrives
		two     string
	}{
		{"each other's", func(name string) []byte { return now[other(name)] }, nil, false, ""},
		{"cut", func(name string) []byte { return now[name][:len(now[name])-1] }, nil, false, ""},
		{"cut to the header", func(name string) []byte { return now[name][:delivery.SealedHeaderSize] }, nil, false, ""},
		{"a bit changed", func(name string) []byte { x := slices.Clone(now[name]); x[len(x)/2] ^= 1; return x }, nil, false, ""},
		{"another generation", func(name string) []byte {
			return append(delivery.AppendSealedHeader(nil, 2), now[name][delivery.SealedHeaderSize:]...)
		}, nil, false, ""},
		{"none", nil, listed(), false, ""},
		{"no order", nil, listed(names[1], names[0], names[1]), false, "?"},
		{"the same for ever", nil, listed(names[0], names[0], names[0]), false, "?"},
		{"of before", func(name string) []byte { return old[name] }, nil, true, "in two"},
		{"honest", func(name string) []byte { return now[name] }, nil, true, "in two, rightly"},
	} {
		p.answer = func(method, path string, _ url.Values) (int, string, []byte) {
			if name, is := strings.CutPrefix(path, "/v1/archive/"); is && method == "GET" && c.segment != nil {
				return 200, "application/octet-stream", c.segment(name)
			}
			if path == "/v1/archive" && c.list != nil {
				return 200, "application/json", c.list
			}
			return 0, "", nil
		}
		must(t, phone.ForgetHistory(ctx))
		must(t, phone.Sync(ctx))
		for room, want := range map[delivery.RoomID]string{one: map[bool]string{true: "in one"}[c.one], two: c.two} {
			if got := strings.Join(phone.read(room), "|"); got != want && c.two != "?" {
				t.Errorf("%s: %q is read, want %q", c.what, got, want)
			}
			if past := phone.past(room); c.what != "honest" && c.two != "?" && (room == two || !c.one) && len(past.Withheld) == 0 {
				t.Errorf("%s: nothing is said to be missing: %+v", c.what, past)
			}
		}
	}
}

// TestAFullArchiveStopsNobody: an archive that takes nothing more is told of, and
// nothing else suffers.
func TestAFullArchiveStopsNobody(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	room, err := ada.NewRoom(ctx, "Full")
	must(t, err)
	b := ada.through()
	refusal, err := json.Marshal(delivery.Refuse(delivery.CodeTooLarge, "full").Problem())
	must(t, err)
	puts := 0
	b.answer = func(method, path string, _ url.Values) (int, string, []byte) {
		if method == "PUT" && strings.HasPrefix(path, "/v1/archive/") {
			puts++
			return 413, delivery.ProblemType, refusal
		}
		return 0, "", nil
	}
	ada.say(room, "one")
	if n, err := ada.Archive(ctx); err != nil || n != 0 || puts != 2 {
		t.Fatalf("%d segments, %d tries, %v", n, puts, err)
	}
	must(t, ada.Sync(ctx))
	ada.say(room, "two")
	if puts != 2 {
		t.Errorf("%d tries", puts)
	}
	ada.linked("phone").has(room, nil)
	b.answer = nil
	if n, err := ada.Archive(ctx); err != nil || n != 1 {
		t.Fatalf("%d segments, %v", n, err)
	}
}

// TestCrashWhileArchiving takes the power of a device at each write of archiving,
// and of another at each write of reading the archive: nothing is lost or double.
func TestCrashWhileArchiving(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	room, err := ada.NewRoom(ctx, "Crash")
	must(t, err)
	var want []string
	ada.say(room, "zero")
	want = append(want, "zero")
	phone := ada.linked("phone")
	crash := func(p *person, kept bool, n int, do func() error) (blown bool) {
		must(t, p.Close())
		config := p.config()
		f := &fuse{Store: config.Store, left: n, kept: kept}
		config.Store = f
		p.Engine, err = sdk.Open(ctx, config)
		must(t, err)
		err := do()
		if (err != nil) != f.blown || err != nil && !errors.Is(err, errCrash) {
			t.Fatalf("write %d, kept %v: blown %v and %v", n, kept, f.blown, err)
		}
		p.restart()
		return f.blown
	}
	for _, kept := range []bool{false, true} {
		for n, going := 1, true; going; n++ {
			text := fmt.Sprintf("word %d %v", n, kept)
			ada.say(room, text)
			want = append(want, text)
			going = crash(ada, kept, n, func() error { _, err := ada.Archive(ctx); return err })
			if _, err := ada.Archive(ctx); err != nil {
				t.Fatal(err)
			}
			must(t, phone.Sync(ctx))
			phone.has(room, want)
			if !going {
				t.Logf("archiving, kept %v: %d writes", kept, n-1)
			}
		}
		for n, going := 1, true; going; n++ {
			must(t, phone.ForgetHistory(ctx))
			going = crash(phone, kept, n, func() error { return phone.Sync(ctx) })
			must(t, phone.Sync(ctx))
			phone.has(room, want)
			if !going {
				t.Logf("reading, kept %v: %d writes", kept, n-1)
			}
		}
	}
	ada.restored(h, "new").has(room, want)
}
