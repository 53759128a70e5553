package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
)

// backup copies the closed database, restore puts a copy back and starts an
// incarnation, as the operator's tools do.
func (w *world) backup(t *testing.T) string {
	t.Helper()
	check(t, w.store.Close())
	raw, err := os.ReadFile(filepath.Join(w.path, "compax.db"))
	check(t, err)
	copied := filepath.Join(t.TempDir(), "backup.db")
	check(t, os.WriteFile(copied, raw, 0o600))
	w.openStore()
	return copied
}

func (w *world) restore(t *testing.T, backup string) {
	t.Helper()
	check(t, w.store.Close())
	raw, err := os.ReadFile(backup)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(w.path, "compax.db"), raw, 0o600))
	w.openStore()
	check(t, StartIncarnation(t.Context(), w.store, w.clock.Now()))
}

// again moves members to a new instance and logs them in.
func (in *instance) again(t *testing.T, people ...*member) {
	t.Helper()
	for _, m := range people {
		m.at = in
		check(t, m.login())
	}
}

func (m *member) offer(id delivery.RoomID, entries []delivery.Entry, info []byte) (delivery.HealResponse, error) {
	return m.offerAll(id, delivery.HealRequest{Entries: keeping(entries), GroupInfo: info})
}

func keeping(entries []delivery.Entry) []delivery.KeptEntry {
	out := make([]delivery.KeptEntry, len(entries))
	for i, e := range entries {
		out[i].Entry = e
	}
	return out
}

func (m *member) offerAll(id delivery.RoomID, req delivery.HealRequest) (out delivery.HealResponse, err error) {
	body := req.AppendTo(nil)
	raw, err := m.call(delivery.RouteHeal, body, "", id.String())
	if err != nil {
		return out, err
	}
	return out, unmarshal(raw, &out)
}

func TestRestoredRoomHeals(t *testing.T) { eachSuite(t, restoredRoomHeals) }

func restoredRoomHeals(t *testing.T, w *world) {
	in := w.start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p[:2]...)
	p[0].say(id, "one")
	for _, m := range p {
		m.sync2(id)
	}
	in.stop()
	saved := w.backup(t)
	in = w.start()
	in.again(t, p...)
	p[0].say(id, "two")
	p[1].sync(id)
	p[1].commit(id)
	unheard := p[1].seal(id, "three")
	_, err := p[1].post(id, delivery.AppendRequest{Entry: unheard})
	check(t, err)
	p[0].sync(id)
	agree(t, id, p[0], p[1])
	kept, err := p[0].log(id, 0)
	check(t, err)
	info, err := p[0].call(delivery.RouteGroupInfo, nil, "", id.String())
	check(t, err)
	old := p[0].head(id)
	in.stop()

	w.restore(t, saved)
	in = w.start()
	wantCode(t, p[0].asking(in), delivery.CodeLogIn) // sessions are gone
	in.again(t, p...)
	h := p[0].head(id)
	if h.Status != delivery.RoomHealing || h.Incarnation != 1 || h.Epoch != 1 || h.LastSeq < delivery.IncarnationJump {
		t.Fatalf("%+v", h)
	}
	_, err = p[0].post(id, delivery.AppendRequest{Entry: p[0].seal(id, "too early")})
	wantCode(t, err, delivery.CodeHealing)
	_, err = p[2].offer(id, kept.Entries, info)
	wantCode(t, err, delivery.CodeNotFound) // not a member

	// A forged or reordered offer takes nothing that does not verify.
	forged := slices.Clone(kept.Entries)
	forged[0].Bytes = forged[1].Bytes
	got, err := p[0].offer(id, forged, info)
	check(t, err)
	if got.Taken != 0 || got.Status != delivery.RoomHealing {
		t.Errorf("%+v", got)
	}
	got, err = p[0].offer(id, kept.Entries, info)
	check(t, err)
	if got.Taken != len(kept.Entries) || got.Epoch != old.Epoch || got.Status != delivery.RoomHealing {
		t.Errorf("%+v", got)
	}
	// The other has the same, which changes nothing; with it everybody has said.
	got, err = p[1].offer(id, kept.Entries, info)
	check(t, err)
	if got.Status != delivery.RoomOpen || got.Epoch != old.Epoch {
		t.Errorf("%+v", got)
	}
	p[0].in(id).seq, p[1].in(id).seq = old.LastSeq, old.LastSeq
	// The sender of "three" never heard its answer: the same bytes are known.
	a, err := p[1].post(id, delivery.AppendRequest{Entry: unheard})
	check(t, err)
	if !a.Duplicate {
		t.Error("an entry that a member had offered is there twice")
	}
	p[0].sync(id)
	p[1].sync(id)
	p[0].say(id, "four")
	p[1].commit(id)
	agree(t, id, p[0], p[1])
	if texts := p[1].in(id).texts; texts[len(texts)-1] != "four" {
		t.Errorf("%q", texts)
	}
	page, err := p[0].log(id, 0)
	check(t, err)
	gaps, bodies := 0, map[string]int{}
	for i, e := range page.Entries {
		if i > 0 && e.Seq != page.Entries[i-1].Seq+1 {
			gaps++
			if e.Kind != delivery.KindIncarnation {
				t.Errorf("a gap before an entry of kind %s", e.Kind)
			}
		}
		bodies[string(e.Bytes)]++
	}
	for _, n := range bodies {
		if n != 1 {
			t.Errorf("an entry is in the log %d times", n)
		}
	}
	if gaps != 1 {
		t.Errorf("%d gaps", gaps)
	}
}

// sync2 is sync for who may not be in the room.
func (m *member) sync2(id delivery.RoomID) {
	if m.rooms[id] != nil {
		m.sync(id)
	}
}

func (m *member) asking(in *instance) error {
	m.at = in
	return m.json(delivery.RouteRooms, nil, nil)
}

// TestHealingEnds: when somebody never comes, the window's end opens the room.
func TestHealingEnds(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	in.stop()
	w.restore(t, w.backup(t))
	in = w.start()
	in.again(t, p...)
	got, err := p[0].offer(id, nil, nil)
	check(t, err)
	if got.Status != delivery.RoomHealing {
		t.Errorf("%+v", got)
	}
	_, err = p[0].post(id, delivery.AppendRequest{Entry: p[0].seal(id, "x")})
	wantCode(t, err, delivery.CodeHealing)
	w.clock.add(in.HealWindow + 1)
	if h := p[0].head(id); h.Status != delivery.RoomOpen {
		t.Errorf("%+v", h)
	}
	p[0].say(id, "alone")
	_, err = p[1].offer(id, []delivery.Entry{{Seq: 9, Epoch: 1, Kind: delivery.KindApplication, Bytes: p[1].seal(id, "late")}}, nil)
	check(t, err)
	if page, err := p[0].log(id, 0); err != nil || len(page.Entries) != 3 {
		t.Errorf("%+v %v", page, err)
	}
}

// TestRestoreDropsPackagesAndCounters: what a copy must not use twice.
func TestRestoreDropsPackagesAndCounters(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	ada := in.people("ada")[0]
	in.stop()
	w.restore(t, w.backup(t))
	in = w.start()
	ada.at = in
	ada.have[5]++ // whatever the device holds: the counter is unset
	check(t, ada.login())
	var n delivery.KeyPackageCount
	check(t, ada.json(delivery.RouteKeyCount, nil, &n))
	if n.Unclaimed != 0 {
		t.Errorf("%+v", n)
	}
	var info delivery.Info
	check(t, ada.json(delivery.RouteInfo, nil, &info))
	if info.Incarnation != 1 {
		t.Errorf("%+v", info)
	}
}

func TestShadowRulesCountAndDoNotRefuse(t *testing.T) {
	for mode, refuses := range map[Mode]bool{ModeOff: false, ModeShadow: false, ModeOn: true} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t)
			w.config.Rules = map[Rule]Mode{RuleClaimMember: mode}
			in := w.start()
			p := in.people("ada", "bob")
			foreign := p[1].create(delivery.RoomGroup)
			err := p[0].json(delivery.RouteClaim, delivery.ClaimRequest{Identity: p[1].owner.id, Suite: uint16(p[0].at.w.suite), Room: foreign}, nil)
			if refuses {
				wantCode(t, err, delivery.CodeRefused)
			} else {
				check(t, err)
			}
			var info delivery.Info
			check(t, p[0].json(delivery.RouteInfo, nil, &info))
			if got := slices.Contains(info.Shadow, string(RuleClaimMember)); got != (mode == ModeShadow) {
				t.Errorf("info says shadow: %v", got)
			}
		})
	}
	if _, err := New(t.Context(), Config{Store: newWorld(t).store}); err == nil || !strings.Contains(err.Error(), "needed") {
		t.Errorf("%v", err)
	}
}
