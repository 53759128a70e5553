package sdk_test

import (
	"fmt"
	"testing"

	"github.com/askucher/compax-core/sdk"
)

// TestAttackMemberRepeatsOthers: the service cannot see whose a message is, so that a
// member may send what another said as an entry of its own, again and again. Nobody
// shows it twice or takes it for a fault, and nobody goes through the whole room for
// each of them.
func TestAttackMemberRepeatsOthers(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, mallory, carl := newPerson(t, h, "ada"), newPerson(t, h, "mallory"), newPerson(t, h, "carl")
	room, err := ada.NewRoom(ctx, "Echo")
	must(t, err)
	ada.invite(room, mallory)
	ada.invite(room, carl)
	var want []string
	var seqs []uint64
	for i := range 20 {
		want = append(want, fmt.Sprint("message ", i))
		seqs = append(seqs, ada.say(room, want[i]).Seq)
	}
	mallory.reads(room, want...)

	must(t, carl.Close())
	config := carl.config()
	store := &counted{Store: config.Store}
	config.Store = store
	carl.Engine, err = sdk.Open(ctx, config)
	must(t, err)
	carl.reads(room, want...)
	rec, err := carl.RoomOf(ctx, room)
	must(t, err)
	store.kept = 0
	for _, seq := range seqs {
		must(t, mallory.Repeat(ctx, room, seq))
		must(t, carl.Refresh(ctx, room))
	}
	if limit := int(rec.Cursor) + 1; store.kept > limit {
		t.Errorf("%d kept entries were read for %d repeated ones in a room of %d", store.kept, len(seqs), rec.Cursor)
	}
	must(t, mallory.Repeat(ctx, room, seqs[3]))
	want = append(want, "after it")
	ada.say(room, "after it")
	carl.reads(room, want...)
	ada.reads(room, want...)
	carl.restart()
	carl.reads(room, want...)
}
