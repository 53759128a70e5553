package mls

import "fmt"

// Step is the outcome of an operation that changes a group. Store Delta durably
// before anything that the step produced leaves the device, then call Forget,
// then go on with Next.
type Step struct {
	// Next is the group after the step.
	Next *Group
	// Delta is what the step changes in the stored state.
	Delta Delta

	forget []wiper
}

// Forget wipes the secrets that the step consumed (RFC 9420 Section 9.2). The
// group before the step, and every other step taken from it, must not be used
// afterwards.
func (s *Step) Forget() {
	wipeAll(s.forget)
	s.forget = nil
}

// forgets notes secrets that the step consumed.
func (s *Step) forgets(secrets ...wiper) { s.forget = append(s.forget, secrets...) }

// Format writes where the step leads, whatever the verb is: never what it holds.
func (s Step) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "Step(to %v, %d records written, %d deleted)", s.Next, len(s.Delta.Put), len(s.Delta.Delete))
}
