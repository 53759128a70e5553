package sdk

import (
	"context"
	"fmt"
	"strings"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// Find gives the identity of @username or of 64 hex digits. A username is pinned
// when it is first seen (ErrNobody, ErrChanged).
func (e *Engine) Find(ctx context.Context, who string) (identity.PublicKey, error) {
	if !strings.HasPrefix(who, "@") {
		id, err := identity.ParsePublicKey(who)
		if err != nil {
			return id, fmt.Errorf("%w: %q is neither @username nor an identity of 64 hex digits", identity.ErrFormat, who)
		}
		return id, nil
	}
	name, err := identity.NormalizeUsername(who)
	if err != nil {
		return identity.PublicKey{}, err
	}
	raw, err := e.client.PersonByUsername(ctx, name)
	if delivery.CodeOf(err) == delivery.CodeNotFound {
		return identity.PublicKey{}, fmt.Errorf("%w: @%s", ErrNobody, name)
	}
	if err != nil {
		return identity.PublicKey{}, e.fail(ctx, err)
	}
	u, err := identity.ParseUsernameRecord(raw)
	if err != nil {
		return identity.PublicKey{}, fmt.Errorf("the record of @%s: %w", name, err)
	}
	rec, err := u.Verify()
	if err != nil || rec.Fields().Username != name {
		return identity.PublicKey{}, fmt.Errorf("%w: the record of @%s is not signed by its owner", ErrNobody, name)
	}
	f := rec.Fields()
	return f.Identity, e.pin(ctx, name, f)
}

// pin remembers who was first seen under a name.
func (e *Engine) pin(ctx context.Context, name string, f identity.UsernameFields) error {
	return e.Store.Update(ctx, func(tx Tx) error {
		before, err := tx.Get(TableUsername, name)
		if err != nil {
			return err
		}
		if before != nil && string(before) != f.Identity.String() {
			return fmt.Errorf("%w: @%s", ErrChanged, name)
		}
		if err := tx.Put(TableUsername, name, []byte(f.Identity.String())); err != nil {
			return err
		}
		p := Person{Identity: f.Identity}
		if _, err := get(tx, TablePerson, f.Identity.String(), &p); err != nil {
			return err
		}
		p.Username = name
		if f.Profile.DisplayName != "" && (p.Name == "" || f.Version > p.Version) {
			p.Name, p.Version = f.Profile.DisplayName, f.Version
		}
		return put(tx, TablePerson, f.Identity.String(), p)
	})
}

// Person gives what this profile knows of an identity.
func (e *Engine) Person(ctx context.Context, id identity.PublicKey) (Person, error) {
	p := Person{Identity: id}
	if id == e.account.Identity {
		me := e.self()
		p.Name, p.Username, p.Version, p.Contact = me.Name, me.Username, me.Profile, true
		return p, nil
	}
	err := e.Store.View(ctx, func(tx Tx) error {
		_, err := get(tx, TablePerson, id.String(), &p)
		return err
	})
	return p, err
}

// People lists whom this profile knows by a username. It sends nothing.
func (e *Engine) People(ctx context.Context) (out []Person, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		all, err := scan[Person](tx, TablePerson, "")
		for _, p := range all {
			if p.Username != "" && p.Identity != e.account.Identity {
				out = append(out, p)
			}
		}
		return err
	})
	return out, err
}

// befriend notes that identities are no strangers.
func (e *Engine) befriend(ctx context.Context, ids ...identity.PublicKey) error {
	return e.Store.Update(ctx, func(tx Tx) error {
		for _, id := range ids {
			p := Person{Identity: id}
			if _, err := get(tx, TablePerson, id.String(), &p); err != nil {
				return err
			}
			if p.Contact || id == e.account.Identity {
				continue
			}
			p.Contact = true
			if err := put(tx, TablePerson, id.String(), p); err != nil {
				return err
			}
			if err := tx.Put(TableSetting, settingDirty, []byte{1}); err != nil {
				return err
			}
		}
		return nil
	})
}

// claim takes a key package of each device of an identity, verified: of that
// identity, not revoked, each device once (ErrNobody).
func (e *Engine) claim(ctx context.Context, room delivery.RoomID, suite wire.CipherSuite, id identity.PublicKey) ([]*wire.KeyPackage, error) {
	got, err := e.client.ClaimKeyPackages(ctx, delivery.ClaimRequest{Identity: id, Suite: uint16(suite), Room: room})
	if delivery.CodeOf(err) == delivery.CodeNotFound {
		return nil, fmt.Errorf("%w: %w", ErrNobody, err)
	}
	if err != nil {
		return nil, e.fail(ctx, err)
	}
	var out []*wire.KeyPackage
	seen := map[identity.DeviceID]bool{}
	for _, raw := range got.Packages {
		var m wire.MLSMessage
		if err := wire.Unmarshal(raw, &m); err != nil || m.WireFormat != wire.WireFormatKeyPackage {
			return nil, fmt.Errorf("%w: a key package that is none", ErrNobody)
		}
		kp := m.KeyPackage
		cred, err := checkPackage(kp, suite)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNobody, err)
		}
		if cred.Identity() != id || seen[cred.DeviceID()] {
			return nil, fmt.Errorf("%w: the service gave a key package of somebody else", ErrNobody)
		}
		revoked, err := e.revoked(ctx, id, cred.DeviceID())
		if err != nil {
			return nil, err
		}
		if !revoked {
			seen[cred.DeviceID()] = true
			out = append(out, kp)
		}
	}
	return out, e.left(ctx, id, suite, len(out), got.Missing)
}

// left deals with devices that have no key package of a room's suite: when it is
// all of somebody's, nobody can be added; one of several comes in by itself when
// it is used again.
func (e *Engine) left(ctx context.Context, id identity.PublicKey, suite wire.CipherSuite, found int, missing []identity.DeviceID) error {
	switch {
	case found == 0 && len(missing) > 0:
		return fmt.Errorf("%w: %w: their devices have published no key package of %s", ErrNobody, ErrSuite, SuiteName(suite))
	case found == 0:
		return fmt.Errorf("%w: none of their devices can be added now", ErrNobody)
	}
	for _, d := range missing {
		if revoked, err := e.revoked(ctx, id, d); err != nil {
			return err
		} else if !revoked {
			e.Warn("their device %s has published no key package of %s: it comes in when it is used again", d, SuiteName(suite))
		}
	}
	return nil
}

func (e *Engine) revoked(ctx context.Context, id identity.PublicKey, device identity.DeviceID) (known bool, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		b, err := tx.Get(TableRevoked, id.String()+"/"+device.String())
		known = b != nil
		return err
	})
	return known, err
}
