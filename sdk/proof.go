package sdk

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/mls/wire"
)

// ground is what replacing this device's leaf stands on. Whoever could make a device
// do it at will could choose the state that it goes on in.
type ground int

const (
	// groundFresh: another device of this account is in the room and this one is not.
	groundFresh ground = iota
	// groundTrimmed: the service no longer has what this device missed.
	groundTrimmed
	// groundRenewed: another copy of the profile may have used this leaf's keys, or
	// the service was restored to an earlier state.
	groundRenewed
	// groundBroken: the log has a commit that this device cannot process.
	groundBroken
)

// knownThere is whom this device last knew in the room, nil when it never was in it.
func (r *room) knownThere() (*policy.Roster, error) {
	if r.state.roster != nil || r.state.group == nil {
		return r.state.roster, nil
	}
	return policy.TrustedRoster(leaves(r.state.group)) // it was removed from this tree
}

// proven checks that a room may be entered in the state that the service shows.
//
// The proof that this device is behind is a GroupInfo of an epoch above its own,
// signed by a leaf whose attestation it held before: the service cannot make one,
// nor a device that came since. No commit of its own is in flight then (see
// settleFlight), and its own leaf proves nothing. A broken commit needs this proof.
//
// Past retention it is enough that a known identity vouches, by whichever device;
// that it is past retention this device reads from its own clock. When the service was
// restored meanwhile, and shows no later state, nobodyComesBack holds there too. A leaf is renewed
// in the state that this device has, or in a later one on proof, or in any other for
// which a known identity vouches, as nobodyComesBack allows: who was removed since does
// not come back by it. That other one is an earlier state, or what came of one, where
// the first to come in may well be a device that nobody knew before.
func (e *Engine) proven(ctx context.Context, r *room, o *outside, g ground) error {
	known, err := r.knownThere()
	if err != nil || known == nil {
		return err
	}
	refused := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrStuck}, args...)...)
	}
	revoked, err := e.revoked(ctx, o.signer.Identity, o.signer.Device)
	if err != nil {
		return err
	}
	if revoked {
		return refused("a revoked device vouches for its present state")
	}
	signer, held := known.Device(o.signer.Device)
	held = held && signer.SameAttestation(o.signer)
	own, now := r.state.group.Epoch(), o.public.Epoch()
	same := now == own && bytes.Equal(wire.Marshal(o.public.Context()), wire.Marshal(r.state.group.Context()))
	proof := held && o.signer.Device != e.account.Device && now > own
	acquainted := known.Has(o.signer.Identity) > 0 || o.signer.Identity == e.account.Identity
	switch {
	case proof, g == groundFresh && acquainted, same && (g == groundTrimmed || g == groundRenewed):
		return nil
	case g == groundTrimmed && acquainted:
		switch long, err := e.pastRetention(ctx, r); {
		case err != nil:
			return err
		case !long:
			return refused("the service says that messages are gone, but this device read the chat to its end not long ago, and no device that it knew there vouches for the present state")
		case now > own:
			return nil
		}
		return e.asBefore(r, known, o, own) // the service was restored meanwhile
	case g == groundRenewed && held && now > own:
		return nil // another copy of this profile has come in
	case g == groundRenewed && acquainted:
		return e.asBefore(r, known, o, own)
	case held && now <= own:
		return refused("the service shows no state after epoch %d, so there is nothing to go on to", own)
	}
	return refused("no device whose attestation this one held vouches for the chat's present state, epoch %d; this device is in epoch %d. It goes on when one of them changes the chat", now, own)
}

// asBefore is nobodyComesBack for a room as this device has it.
func (e *Engine) asBefore(r *room, known *policy.Roster, o *outside, own uint64) error {
	before, err := policy.CheckContext(r.state.group.Context(), nil)
	if err != nil {
		return err
	}
	return nobodyComesBack(before, known, o, own)
}

// nobodyComesBack checks an earlier state, which a service that was restored shows, or
// another one that came of it: everybody there is in the chat as this device knows it,
// and no device is revoked. Devices that it does not know are let be when they are of
// such people: they came in after what was lost, or may come in by themselves at any
// time. Who was removed may not, so with them this device does not go on.
func nobodyComesBack(before *policy.Room, known *policy.Roster, o *outside, own uint64) error {
	for _, m := range o.state.roster.Members() {
		was, in := known.Device(m.Device)
		if known.Has(m.Identity) == 0 || in && was.Key != m.Key || before.Revocations.Covers(m.Identity, m.Device) {
			return fmt.Errorf("%w: the service shows the state of epoch %d, in which devices are that have no place in the chat as this one knows it, at epoch %d. It goes on when they are removed there, or in a new chat", ErrStuck, o.public.Epoch(), own)
		}
	}
	return nil
}

// pastRetention reports whether this device has been away for as long as messages
// are kept, a day at least. It counts by its own clock: the service alone could say
// so at any time. A profile that does not know when it read last has been away.
func (e *Engine) pastRetention(ctx context.Context, r *room) (bool, error) {
	info, err := e.home(ctx)
	if err != nil {
		return false, e.fail(ctx, err)
	}
	kept := time.Duration(max(info.RetentionDays, 1)) * 24 * time.Hour
	return e.nowMS()-r.rec.Caught >= kept.Milliseconds(), nil
}
