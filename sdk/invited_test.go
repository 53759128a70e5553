package sdk

import (
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery/policy"
)

// TestAttackInvitationSaysWhenItWasSent: the service can say any time. It makes nobody
// count as away since before this device made the key package or last read the room,
// nor as here at a time to come.
func TestAttackInvitationSaysWhenItWasSent(t *testing.T) {
	e := newOwner(t).device()
	start := time.Now().Truncate(time.Second)
	e.Now = func() time.Time { return start }
	b, err := e.newBundle(policy.Suites[0], false)
	must(t, err)
	defer b.Wipe()
	e.Now = func() time.Time { return start.Add(40 * 24 * time.Hour) }
	day := func(n int) int64 { return start.Add(time.Duration(n) * 24 * time.Hour).UnixMilli() }
	for name, c := range map[string]struct{ sent, caught, want int64 }{
		"it waited":                   {day(5), 0, day(5)},
		"before the key package":      {day(-300), 0, day(0)},
		"no time at all":              {0, 0, day(0)},
		"before the room was read":    {day(2), day(9), day(9)},
		"tomorrow":                    {day(41), 0, day(40)},
		"the clock was ahead earlier": {day(5), day(50), day(40)},
	} {
		if got := e.invitedAt(c.sent, c.caught, b); got != c.want {
			t.Errorf("%s: %v, want %v", name, time.UnixMilli(got), time.UnixMilli(c.want))
		}
	}
}
