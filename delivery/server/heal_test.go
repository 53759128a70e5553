package server

import (
	"bytes"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/mls"
)

// lose restores a backup and logs people in at a new instance.
func (w *world) lose(t *testing.T, in *instance, saved string, people ...*member) *instance {
	t.Helper()
	in.stop()
	w.restore(t, saved)
	in = w.start()
	in.again(t, people...)
	return in
}

// save takes a backup while the service is stopped.
func (w *world) save(t *testing.T, in *instance, people ...*member) (*instance, string) {
	t.Helper()
	in.stop()
	saved := w.backup(t)
	in = w.start()
	in.again(t, people...)
	return in, saved
}

func (m *member) kept(id delivery.RoomID, after uint64) []delivery.KeptEntry {
	m.t.Helper()
	page, err := m.log(id, after)
	check(m.t, err)
	return keeping(page.Entries)
}

func TestHealedEntriesKeepTheirBlobs(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob", "eve")
	id, other := group(t, p[:2]...), group(t, p[2])
	foreign := p[2].blob(t, []byte("eve's own"))
	_, err := p[2].post(other, delivery.AppendRequest{Entry: p[2].seal(other, "mine"), Blobs: []delivery.BlobID{foreign}})
	check(t, err)
	before := p[0].blob(t, []byte("uploaded before, sent after"))
	in, saved := w.save(t, in, p...)
	after := p[0].blob(t, []byte("uploaded after"))
	gone := p[0].blob(t, []byte("its bytes are lost too"))
	listed := []delivery.BlobID{before, after, gone}
	_, err = p[0].post(id, delivery.AppendRequest{Entry: p[0].seal(id, "three files"), Blobs: listed})
	check(t, err)
	p[1].sync(id)
	kept := p[1].kept(id, 1)
	kept[0].Blobs = append(listed, foreign)

	in = w.lose(t, in, saved, p...)
	check(t, in.Blobs.Delete(t.Context(), gone))
	w.clock.add(looseBlobs - time.Minute)
	check(t, in.Sweep(t.Context())) // keeps what no entry refers to yet
	got, err := p[1].offerAll(id, delivery.HealRequest{Entries: kept})
	check(t, err)
	if got.Taken != 1 || got.Missing != 2 { // the lost one, and the one that bob may not give away
		t.Errorf("%+v", got)
	}
	w.clock.add(2 * looseBlobs)
	check(t, in.Sweep(t.Context()))
	in.again(t, p...)
	for blob, want := range map[delivery.BlobID]string{before: "uploaded before, sent after", after: "uploaded after"} {
		for _, m := range p[:2] {
			if b, err := m.call(delivery.RouteBlob, nil, "", blob.String()); err != nil || string(b) != want {
				t.Errorf("%q %v", b, err)
			}
		}
		_, err := p[2].call(delivery.RouteBlob, nil, "", blob.String())
		wantCode(t, err, delivery.CodeNotFound)
	}
	_, err = p[0].call(delivery.RouteBlob, nil, "", foreign.String())
	wantCode(t, err, delivery.CodeNotFound)
	_, err = p[0].call(delivery.RouteBlob, nil, "", gone.String())
	wantCode(t, err, delivery.CodeNotFound)
}

// TestLostRoomIsMadeAgain: by its creator alone, and everybody else comes in by the
// commits that the room had.
func TestLostRoomIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob", "eve")
	in, saved := w.save(t, in, p...)
	id, founding := p[0].creation(delivery.RoomGroup)
	_, err := p[0].call(delivery.RouteCreateRoom, founding, "")
	check(t, err)
	p[0].commit(id, p[0].adding(id, p[1].owner)...)
	p[1].join()
	p[0].say(id, "one")
	p[1].sync(id)
	p[1].say(id, "two")
	p[0].sync(id)
	kept := p[0].kept(id, 0)
	kept[0].AcceptedMS = 0 // a lie: neither older than the room
	kept[1].AcceptedMS = w.clock.Now().Add(time.Hour).UnixMilli()
	created := w.clock.Now()

	w.clock.add(100 * time.Hour)
	in = w.lose(t, in, saved, p...)
	_, err = p[1].offerAll(id, delivery.HealRequest{Entries: kept})
	wantCode(t, err, delivery.CodeNotFound)
	for _, stranger := range p[1:] { // the founding is signed by another leaf than theirs
		_, err = stranger.offerAll(id, delivery.HealRequest{Entries: kept, Founding: founding})
		wantCode(t, err, delivery.CodeRefused)
	}
	_, err = w.store.Room(t.Context(), id)
	if err == nil {
		t.Fatal("a stranger made the room")
	}
	mine, _ := p[2].creation(delivery.RoomGroup)
	_, err = p[0].offerAll(mine, delivery.HealRequest{Founding: founding})
	wantCode(t, err, delivery.CodeBadRequest) // the founding of another room

	got, err := p[0].offerAll(id, delivery.HealRequest{Entries: kept[:2], Founding: founding, More: true})
	check(t, err)
	if got.Taken != 2 || got.Status != delivery.RoomHealing {
		t.Errorf("%+v", got)
	}
	got, err = p[0].offerAll(id, delivery.HealRequest{Entries: kept[2:]})
	check(t, err)
	if got.Taken != 1 || got.Status != delivery.RoomHealing { // others may have come in that ada never saw
		t.Errorf("%+v", got)
	}
	got, err = p[1].offerAll(id, delivery.HealRequest{})
	check(t, err)
	w.clock.add(in.HealWindow + time.Second)
	if got, err = p[1].offerAll(id, delivery.HealRequest{}); err != nil || got.Status != delivery.RoomOpen {
		t.Errorf("%+v %v", got, err)
	}
	page, err := p[0].log(id, 0)
	check(t, err)
	if len(page.Entries) != 4 || page.Entries[0].Kind != delivery.KindIncarnation || page.Entries[0].Seq != in.secrets.present.marker.First(1) {
		t.Fatalf("%+v", page)
	}
	first, second := page.Entries[1], page.Entries[2]
	made, err := w.store.Room(t.Context(), id)
	check(t, err)
	if at := time.UnixMilli(made.CreatedMS); at.Before(created.Add(-2*time.Hour)) || at.After(created) || first.AcceptedMS != made.CreatedMS {
		t.Errorf("the room is of %v and its first entry of %v", at, time.UnixMilli(first.AcceptedMS))
	}
	if second.AcceptedMS < first.AcceptedMS || second.AcceptedMS > w.clock.Now().UnixMilli() {
		t.Errorf("an entry that was offered as of the future is of %d", second.AcceptedMS)
	}
	for _, m := range p[:2] {
		m.in(id).seq = page.Head
	}
	p[1].commit(id)
	p[0].sync(id)
	p[0].say(id, "on we go")
	agree(t, id, p[:2]...)
}

// TestHealingTakesNoRoomWithoutARestore: heal is no second way to make rooms.
func TestHealingTakesNoRoomWithoutARestore(t *testing.T) {
	in := newWorld(t).start()
	ada := in.people("ada")[0]
	id, founding := ada.creation(delivery.RoomGroup)
	_, err := ada.offerAll(id, delivery.HealRequest{Founding: founding})
	wantCode(t, err, delivery.CodeNotFound)
}

// TestWhoCameAfterTheBackupOffers: a device that the restored tree does not know
// brings its own entry into the room and what it said; others bring nothing that
// they could not have said.
func TestWhoCameAfterTheBackupOffers(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p[:2]...)
	in, saved := w.save(t, in, p...)
	laptop := in.member(p[0].owner.attest(t, "laptop"))
	c := laptop.external(id)
	check(t, laptop.enter(id, c))
	said := laptop.say(id, "from the laptop")
	p[0].sync(id)
	kept := laptop.kept(id, said.Seq-1)
	kept = append([]delivery.KeptEntry{{Entry: delivery.Entry{Seq: said.Seq - 1, Epoch: 1, Kind: delivery.KindCommit, AcceptedMS: said.AcceptedMS, Bytes: c.Message}}}, kept...)

	in = w.lose(t, in, saved, p...)
	in.join(laptop.device)
	before := w.fingerprint(t, id)
	forged := kept[1]
	forged.Seq, forged.Epoch = said.Seq-1, 1
	forged.Bytes = p[1].seal(id, "said by nobody in the tree's name")
	for _, outsider := range []*member{laptop, p[2]} { // not in the tree of that epoch
		_, err := outsider.offerAll(id, delivery.HealRequest{Entries: []delivery.KeptEntry{forged}})
		wantCode(t, err, delivery.CodeNotFound)
	}
	if w.fingerprint(t, id) != before {
		t.Error("an outsider's message went in")
	}
	got, err := laptop.offerAll(id, delivery.HealRequest{Entries: kept})
	check(t, err)
	if got.Taken != 2 || got.Epoch != 2 {
		t.Errorf("%+v", got)
	}
	page, err := laptop.log(id, 0)
	check(t, err)
	if len(page.Entries) != 1 || !bytes.Equal(page.Entries[0].Bytes, kept[1].Bytes) {
		t.Errorf("%+v", page)
	}
}

// TestRemovedMemberOffersTheTruthOnly: who was removed after the backup is in the
// restored tree; the commit that removed it, offered by anybody, ends that.
func TestRemovedMemberOffersTheTruthOnly(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p...)
	for _, m := range p {
		m.sync(id)
	}
	in, saved := w.save(t, in, p...)
	leaf := p[2].in(id).group.OwnLeaf()
	p[0].commit(id, mls.RemoveProposal(leaf))
	p[1].sync(id)
	kept := p[0].kept(id, 1)

	w.lose(t, in, saved, p...)
	_, err := p[2].offerAll(id, delivery.HealRequest{Entries: kept}) // eve may bring it herself
	wantCode(t, err, delivery.CodeNotFound)                          // and is out by it
	if h := p[0].head(id); h.Epoch != 2 {
		t.Fatalf("%+v", h)
	}
	before := w.fingerprint(t, id)
	forged := delivery.KeptEntry{Entry: delivery.Entry{Seq: kept[0].Seq + 1, Epoch: 2, Kind: delivery.KindApplication, Bytes: p[1].seal(id, "x")}}
	_, err = p[2].offerAll(id, delivery.HealRequest{Entries: []delivery.KeptEntry{forged}})
	wantCode(t, err, delivery.CodeNotFound)
	if w.fingerprint(t, id) != before {
		t.Error("a removed device's message went in")
	}
}

// TestHealingWaitsForWhatIsBetween: an entry behind others that nobody has offered
// yet waits, so that a commit does not lock out the messages before it.
func TestHealingWaitsForWhatIsBetween(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	in, saved := w.save(t, in, p...)
	p[0].say(id, "two")
	p[1].sync(id)
	p[1].commit(id)
	p[0].sync(id)
	kept := p[0].kept(id, 1)

	in = w.lose(t, in, saved, p...)
	got, err := p[1].offerAll(id, delivery.HealRequest{Entries: kept[1:]})
	check(t, err)
	if got.Taken != 0 || got.Epoch != 1 || got.Status != delivery.RoomHealing {
		t.Errorf("%+v", got)
	}
	got, err = p[0].offerAll(id, delivery.HealRequest{Entries: kept[:1]})
	check(t, err)
	if got.Taken != 1 || got.Status != delivery.RoomHealing { // bob holds more than he could give
		t.Errorf("%+v", got)
	}
	info, err := p[1].in(id).group.GroupInfo(false, nil)
	check(t, err)
	got, err = p[1].offerAll(id, delivery.HealRequest{Entries: kept[1:], GroupInfo: info})
	check(t, err)
	if got.Taken != 1 || got.Epoch != 2 || got.Status != delivery.RoomOpen {
		t.Errorf("%+v", got)
	}
	stored, err := p[0].call(delivery.RouteGroupInfo, nil, "", id.String())
	check(t, err)
	if !bytes.Equal(stored, info) {
		t.Error("the epoch's GroupInfo is not kept")
	}

	// When nobody has what is between, it is given up.
	in = w.lose(t, in, saved, p...)
	for _, m := range p {
		if got, err = m.offerAll(id, delivery.HealRequest{Entries: kept[1:]}); err != nil || got.Status != delivery.RoomHealing {
			t.Errorf("%+v %v", got, err)
		}
	}
	for _, m := range p {
		got, err = m.offerAll(id, delivery.HealRequest{Entries: kept[1:]})
		check(t, err)
	}
	if got.Epoch != 2 || got.Status != delivery.RoomOpen {
		t.Errorf("%+v", got)
	}
	_ = in
}

// TestEmptyLogIsNotTrimmedByARestore: who has read nothing misses nothing.
func TestEmptyLogIsNotTrimmedByARestore(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	ada := in.people("ada")[0]
	id := ada.create(delivery.RoomGroup)
	in, saved := w.save(t, in, ada)
	w.lose(t, in, saved, ada)
	page, err := ada.log(id, 0)
	check(t, err)
	if len(page.Entries) != 1 || page.Entries[0].Kind != delivery.KindIncarnation {
		t.Errorf("%+v", page)
	}
}

// TestHealingTakesNothingPastRetention: what the service gave up by itself is not
// lost, and does not come in again.
func TestHealingTakesNothingPastRetention(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	p[0].say(id, "old")
	kept := p[0].kept(id, 0)
	in, saved := w.save(t, in, p...)
	in = w.lose(t, in, saved, p...)
	w.clock.add(in.Retention + time.Hour)
	check(t, in.Sweep(t.Context()))
	in.again(t, p...)
	for range 2 { // the second time what is between is given up
		got, err := p[0].offerAll(id, delivery.HealRequest{Entries: kept})
		check(t, err)
		if got.Taken != len(kept) || got.Dropped != 0 {
			t.Errorf("%+v", got)
		}
		w.clock.add(in.HealWindow / 9)
	}
	jump := in.secrets.present.marker.Jump
	page, err := p[0].log(id, jump)
	if err == nil && len(page.Entries) > 0 && page.Entries[0].Kind != delivery.KindIncarnation {
		t.Errorf("%+v", page)
	}
	if room, err := w.store.Room(t.Context(), id); err != nil || room.NextSeq-1 != jump+3 {
		t.Errorf("%+v %v", room, err)
	}
}
