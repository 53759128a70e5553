package sdk_test

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
	"github.com/askucher/compax-core/sdk"
)

// called is what everybody in a room is called, in order: "Name @username".
func (p *person) called(room delivery.RoomID) (out []string) {
	p.t.Helper()
	members, err := p.Members(p.t.Context(), room)
	must(p.t, err)
	for _, m := range members {
		out = append(out, m.Person.Name+" @"+m.Person.Username)
	}
	slices.Sort(out)
	return out
}

func (p *person) calls(room delivery.RoomID, want ...string) {
	p.t.Helper()
	if got := p.called(room); !slices.Equal(got, want) {
		p.t.Errorf("%s sees %q, want %q", p.Name(), got, want)
	}
}

// TestEverybodyKnowsEveryName: who comes into a room of four knows what everybody there
// is called once it is up to date, and they know the newcomer, who comes in without a
// word: nobody has met anybody but the one who made the room.
func TestEverybodyKnowsEveryName(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	people := []*person{newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carol"), newPerson(t, h, "dan"), newPerson(t, h, "eve")}
	ada, eve := people[0], people[4]
	// Eve knows Ada: her device comes into Ada's rooms without being asked.
	id, err := eve.Find(ctx, "@ada")
	must(t, err)
	_, err = eve.Direct(ctx, id)
	must(t, err)
	room, err := ada.NewRoom(ctx, "Five")
	must(t, err)
	for _, p := range people[1:4] {
		ada.invite(room, p)
	}
	ada.adds(room, eve.Identity())
	for _, p := range slices.Backward(people) {
		must(t, p.Sync(ctx))
	}
	want := []string{"ada @ada", "bob @bob", "carol @carol", "dan @dan", "eve @eve"}
	for _, p := range people {
		p.calls(room, want...)
	}
}

// TestWhoComesBackKnowsWhatOthersAreCalledNow: somebody changes name and username while
// another is out of the room, who reads neither then nor later what was said of it.
func TestWhoComesBackKnowsWhatOthersAreCalledNow(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, carol := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carol")
	room, err := ada.NewRoom(ctx, "Back")
	must(t, err)
	ada.invite(room, bob)
	ada.invite(room, carol)
	must(t, bob.Sync(ctx))
	bob.calls(room, "ada @ada", "bob @bob", "carol @carol")
	must(t, ada.Remove(ctx, room, bob.Identity()))
	must(t, bob.Sync(ctx))
	must(t, carol.SetProfile(ctx, "Carol C.", "", "carol_c", nil))
	must(t, ada.Add(ctx, room, bob.Identity()))
	must(t, bob.Sync(ctx))
	bob.calls(room, "Carol C. @carol_c", "ada @ada", "bob @bob")
	must(t, ada.Sync(ctx))
	ada.calls(room, "Carol C. @carol", "ada @ada", "bob @bob") // the name was said in the room, and no username counts that is
}

// TestANameChangesWhileOthersAreAway: they read it in the room when they are back, and so
// does the account's other device, which does not say it a second time. Who is offline
// while the rooms are told goes on with it.
func TestANameChangesWhileOthersAreAway(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	tablet := ada.again(h)
	var rooms []delivery.RoomID
	for _, title := range []string{"One", "Two"} {
		room, err := ada.NewRoom(ctx, title)
		must(t, err)
		ada.invite(room, bob)
		rooms = append(rooms, room)
	}
	must(t, tablet.Sync(ctx))
	b := ada.through()
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if strings.HasSuffix(path, "/append") {
			return 503, delivery.ProblemType, problem(t, delivery.Refuse(delivery.CodeRetry, "later"))
		}
		return 0, "", nil
	}
	must(t, ada.SetProfile(ctx, "Ada L.", "Tea", "ada", nil))
	b.answer = nil
	must(t, ada.Sync(ctx))
	must(t, bob.Sync(ctx))
	for _, room := range rooms {
		bob.calls(room, "Ada L. @ada", "bob @bob")
	}
	must(t, tablet.Sync(ctx))
	if tablet.Name() != "Ada L." {
		t.Errorf("the other device is called %q", tablet.Name())
	}
	for _, p := range []*person{ada, tablet, bob, ada} {
		must(t, p.Sync(ctx))
	}
	said := 0
	for _, room := range rooms {
		lines, err := bob.History(ctx, room, 0, 0, true)
		must(t, err)
		for _, l := range lines {
			if l.Kind == sdk.LineProfile && l.Text == "Ada L." {
				said++
			}
		}
		rec, err := bob.RoomOf(ctx, room)
		must(t, err)
		// Bob comes in, title, Ada, Bob, the other device, Ada's new name.
		if rec.Cursor != 6 {
			t.Errorf("the room is at #%d", rec.Cursor)
		}
	}
	if said != 1 {
		t.Errorf("bob is told %d times", said)
	}
}

// TestNamesThatTheDirectoryDoesNotTell: who has no line there is called as they say in
// the room; a line of somebody else, one that is damaged, or one whose username belongs
// to another, names nobody. A directory that does not answer is asked again.
func TestNamesThatTheDirectoryDoesNotTell(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, carol := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carol")
	room, err := ada.NewRoom(ctx, "Dark")
	must(t, err)
	ada.invite(room, bob)
	asked := 0
	b := carol.through()
	_, err = carol.Find(ctx, "@bob") // whose username it is from now on
	must(t, err)
	line := func(words phrase.Phrase, f identity.UsernameFields) []byte {
		node, err := words.Account()
		must(t, err)
		key, err := node.Identity()
		must(t, err)
		rec, err := identity.SignUsername(f, key)
		must(t, err)
		return rec.Bytes()
	}
	stolen := line(ada.words, identity.UsernameFields{Identity: ada.Identity(), Username: "bob", Version: 5, IssuedAt: 1, Profile: identity.PublicProfile{DisplayName: "Bob"}})
	others := line(bob.words, identity.UsernameFields{Identity: bob.Identity(), Username: "bob", Version: 9, IssuedAt: 1, Profile: identity.PublicProfile{DisplayName: "Bob"}})
	answer := func() (int, string, []byte) {
		return 503, delivery.ProblemType, problem(t, delivery.Refuse(delivery.CodeRetry, "later"))
	}
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if path != "/v1/people/"+ada.Identity().String() {
			return 0, "", nil
		}
		asked++
		return answer()
	}
	must(t, ada.Add(ctx, room, carol.Identity()))
	must(t, carol.Accept(ctx, room))
	must(t, carol.Sync(ctx))
	carol.calls(room, "ada @", "bob @bob", "carol @carol") // Ada said it when she added Carol
	again := func(answers func() (int, string, []byte), want string) {
		t.Helper()
		must(t, ada.Remove(ctx, room, carol.Identity()))
		must(t, carol.Sync(ctx))
		answer, asked = answers, 0
		must(t, ada.Add(ctx, room, carol.Identity()))
		must(t, carol.Sync(ctx))
		must(t, carol.Sync(ctx))
		if asked != 1 {
			t.Errorf("the directory was asked %d times for somebody", asked)
		}
		carol.calls(room, want, "bob @bob", "carol @carol")
	}
	again(func() (int, string, []byte) {
		return 404, delivery.ProblemType, problem(t, delivery.Refuse(delivery.CodeNotFound, "no line"))
	}, "ada @")
	given := func(record []byte) func() (int, string, []byte) {
		return func() (int, string, []byte) {
			return 200, "application/json", jsonOf(t, delivery.ProfileBody{Record: record})
		}
	}
	again(given(others), "ada @")
	again(given(others[:len(others)-1]), "ada @")
	again(given(stolen), "Bob @")
	if id, err := carol.Find(ctx, "@bob"); err != nil || id != bob.Identity() {
		t.Errorf("@bob is %v: %v", id, err)
	}
}

// TestWhoComesInIsNamedWhenItIsToldOf: a listener is told that somebody came in when it
// is known what they are called, however long the directory takes to say so.
func TestWhoComesInIsNamedWhenItIsToldOf(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, carol := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carol")
	room := ada.room("Door")
	ada.invite(room, bob)
	must(t, bob.Sync(ctx))
	b := bob.through()
	// The directory thinks until whoever brings the room up to date has asked, and the
	// listener has asked too, or told of it all the same.
	both, told := make(chan struct{}), make(chan struct{})
	var asked atomic.Int32
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if strings.HasSuffix(path, "/people/"+carol.Identity().String()) {
			if asked.Add(1) == 2 {
				close(both)
			}
			select {
			case <-both:
			case <-told:
			}
		}
		return 0, "", nil
	}
	var once sync.Once
	done := make(chan error, 1)
	var name string
	ready := make(chan struct{})
	go func() {
		done <- bob.Listen(ctx, sdk.Listening{Room: &room, Events: true}, func(l sdk.Line) error {
			once.Do(func() { close(ready) })
			if l.Kind != sdk.LineJoin || l.From != carol.Identity() {
				return nil
			}
			close(told)
			p, err := bob.Person(ctx, l.From)
			name = p.Name
			return cmp.Or(err, sdk.ErrEnough)
		})
	}()
	<-ready // it has heard what was before
	must(t, ada.Add(ctx, room, carol.Identity()))
	must(t, <-done)
	if name != "carol" {
		t.Errorf("told of %q", name)
	}
}
