package delivery

import "testing"

// TestSuccessorID: one id of a room and a number, at the same home, as the protocol page
// states it.
func TestSuccessorID(t *testing.T) {
	old, err := ParseRoomID("01513d0e-0102-8304-8506-0708090a0b0c")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[RoomID]bool{old: true}
	for n := range uint32(MaxSuccessors) {
		id := SuccessorID(old, n)
		if _, err := RoomIDFromBytes(id[:]); err != nil || id.Home() != old.Home() || seen[id] || id != SuccessorID(old, n) {
			t.Errorf("%d: %s, %v", n, id, err)
		}
		seen[id] = true
	}
	if got := SuccessorID(old, 1).String(); got != "01513d0e-4590-8df4-b18d-92bf629efd44" {
		t.Error(got)
	}
}
