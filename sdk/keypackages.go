package sdk

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

const (
	firstKeys = 20 // packages of each suite that a new device publishes
	moreKeys  = 20 // and when those of a suite run low
	lifetime  = 90 * 24 * time.Hour
	clockSkew = 24 * time.Hour // by which clocks may differ
	// bundlesAtMost is of how many packages of a suite the private keys are kept: a
	// service keeps 500 at most, and of those that were claimed the Welcomes are on
	// their way.
	bundlesAtMost = 600
)

// settingKeys is, below it, by suite: key packages of it were published.
const settingKeys = "keypackages."

func keysSetting(id wire.CipherSuite) string { return fmt.Sprintf("%s%04x", settingKeys, uint16(id)) }

func (e *Engine) credential() wire.Credential { return wire.BasicCredential(e.cred.Bytes()) }

// publishKeys makes n key packages of each suite and one of last resort, stores
// their private keys and publishes them.
func (e *Engine) publishKeys(ctx context.Context, n int, suites ...wire.CipherSuite) error {
	for _, id := range suites {
		if err := e.publishSuite(ctx, id, n); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) publishSuite(ctx context.Context, id wire.CipherSuite, n int) error {
	var packages [][]byte
	bundles := map[string][]byte{}
	for i := range n + 1 {
		b, err := e.newBundle(id, i == n)
		if err != nil {
			return err
		}
		ref, err := b.Ref()
		if err != nil {
			return fmt.Errorf("sdk: a key package: %w", err)
		}
		raw, err := b.MarshalBinary()
		if err != nil {
			return fmt.Errorf("sdk: a key package: %w", err)
		}
		bundles[bundleKey(ref)] = raw
		packages = append(packages, b.Message())
		b.Wipe()
	}
	err := e.Store.Update(ctx, func(tx Tx) error {
		if err := e.dropBundles(tx, id, len(bundles)); err != nil {
			return err
		}
		for ref, raw := range bundles {
			if err := tx.Put(TableBundle, ref, raw); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err = e.client.PublishKeyPackages(ctx, packages); err != nil {
		return err
	}
	return e.Store.Update(ctx, func(tx Tx) error { return tx.Put(TableSetting, keysSetting(id), []byte{1}) })
}

// offerSuites publishes key packages of the suites that this device has published
// none of yet: a profile that is older than a suite.
func (e *Engine) offerSuites(ctx context.Context) error {
	var missing []wire.CipherSuite
	err := e.Store.View(ctx, func(tx Tx) error {
		for _, id := range policy.Suites {
			b, err := tx.Get(TableSetting, keysSetting(id))
			if err != nil {
				return err
			}
			if b == nil {
				missing = append(missing, id)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range missing {
		if err := e.refillSuite(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// refillKeys publishes more key packages of the suites of which few are left.
func (e *Engine) refillKeys(ctx context.Context) error {
	for _, id := range policy.Suites {
		if err := e.refillSuite(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) refillSuite(ctx context.Context, id wire.CipherSuite) error {
	left, err := e.client.CountKeyPackages(ctx, uint16(id))
	if err != nil {
		return e.fail(ctx, err)
	}
	if left.Unclaimed >= left.LowWater && left.LastResort {
		return e.Store.Update(ctx, func(tx Tx) error { return tx.Put(TableSetting, keysSetting(id), []byte{1}) })
	}
	return e.publishKeys(ctx, moreKeys, id)
}

func (e *Engine) newBundle(id wire.CipherSuite, lastResort bool) (*mls.KeyPackageBundle, error) {
	now := e.Now()
	b, err := mls.NewKeyPackage(mls.KeyPackageParams{
		CipherSuite: id, Random: e.Random, Signer: e.signer(id), Credential: e.credential(),
		Capabilities: policy.Capabilities(), LeafExtensions: policy.LeafExtensions(),
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime), LastResort: lastResort,
	})
	if err != nil {
		return nil, fmt.Errorf("sdk: make a key package: %w", err)
	}
	return b, nil
}

func bundleKey(ref wire.KeyPackageRef) string { return fmt.Sprintf("%x", []byte(ref)) }

// bundles reads the key packages that a Welcome names.
func (e *Engine) bundles(ctx context.Context, welcome []byte) (out []*mls.KeyPackageBundle, err error) {
	var m wire.MLSMessage
	if err := wire.Unmarshal(welcome, &m); err != nil || m.WireFormat != wire.WireFormatWelcome {
		return nil, nil // joining says what is wrong with it
	}
	err = e.Store.View(ctx, func(tx Tx) error {
		for _, s := range m.Welcome.Secrets {
			raw, err := tx.Get(TableBundle, bundleKey(s.NewMember))
			if err != nil {
				return err
			}
			if raw == nil {
				continue
			}
			b := new(mls.KeyPackageBundle)
			if err := b.UnmarshalBinary(raw); err != nil {
				return &uselessError{fmt.Errorf("sdk: a stored key package: %w", err)}
			}
			out = append(out, b)
		}
		return nil
	})
	return out, err
}

// dropBundles forgets packages that nobody can use any more, and of a suite those that
// end first, so that with the added ones there are bundlesAtMost: a service that always
// says that none are left fills no disk.
func (e *Engine) dropBundles(tx Tx, id wire.CipherSuite, added int) error {
	type kept struct {
		key  string
		ends uint64 // seconds
	}
	limit := uint64(e.Now().Add(-clockSkew).Unix())
	var old, rest []kept
	err := tx.Scan(TableBundle, "", "", func(key string, raw []byte) (bool, error) {
		b := new(mls.KeyPackageBundle)
		if err := b.UnmarshalBinary(raw); err != nil {
			return false, fmt.Errorf("sdk: a stored key package: %w", err)
		}
		defer b.Wipe()
		switch k := (kept{key, b.KeyPackage.LeafNode.Lifetime.NotAfter}); {
		case k.ends < limit:
			old = append(old, k)
		case b.KeyPackage.CipherSuite == id:
			rest = append(rest, k)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if over := len(rest) + added - bundlesAtMost; over > 0 {
		slices.SortFunc(rest, func(a, b kept) int { return cmp.Compare(a.ends, b.ends) })
		old = append(old, rest[:min(over, len(rest))]...)
	}
	for _, k := range old {
		if err := tx.Delete(TableBundle, k.key); err != nil {
			return err
		}
	}
	return nil
}
