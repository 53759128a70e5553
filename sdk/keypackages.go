package sdk

import (
	"context"
	"fmt"
	"time"

	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

const (
	firstKeys     = 20 // packages that a new device publishes
	moreKeys      = 20 // and when they run low
	lifetime      = 90 * 24 * time.Hour
	clockSkew     = 24 * time.Hour // by which clocks may differ
	defaultSuite  = wire.CipherSuite(1)
	bundlesAtMost = 400
)

func (e *Engine) credential() wire.Credential { return wire.BasicCredential(e.cred.Bytes()) }

// publishKeys makes n key packages and one of last resort, stores their private
// keys and publishes them.
func (e *Engine) publishKeys(ctx context.Context, n int) error {
	var packages [][]byte
	bundles := map[string][]byte{}
	for i := range n + 1 {
		b, err := e.newBundle(i == n)
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
		bundles[fmt.Sprintf("%x", []byte(ref))] = raw
		packages = append(packages, b.Message())
		b.Wipe()
	}
	err := e.Store.Update(ctx, func(tx Tx) error {
		if err := e.dropBundles(tx); err != nil {
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
	_, err = e.client.PublishKeyPackages(ctx, packages)
	return err
}

func (e *Engine) newBundle(lastResort bool) (*mls.KeyPackageBundle, error) {
	now := e.Now()
	b, err := mls.NewKeyPackage(mls.KeyPackageParams{
		CipherSuite: defaultSuite, Random: e.Random, Signer: e.mls.Signers[0], Credential: e.credential(),
		Capabilities: policy.Capabilities(), LeafExtensions: policy.LeafExtensions(),
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime), LastResort: lastResort,
	})
	if err != nil {
		return nil, fmt.Errorf("sdk: make a key package: %w", err)
	}
	return b, nil
}

// bundles reads the key packages that a Welcome may be for.
func (e *Engine) bundles(ctx context.Context) (out []*mls.KeyPackageBundle, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		return tx.Scan(TableBundle, "", "", func(_ string, raw []byte) (bool, error) {
			b := new(mls.KeyPackageBundle)
			if err := b.UnmarshalBinary(raw); err != nil {
				return false, fmt.Errorf("sdk: a stored key package: %w", err)
			}
			out = append(out, b)
			return true, nil
		})
	})
	return out, err
}

// dropBundles forgets packages that nobody can use any more.
func (e *Engine) dropBundles(tx Tx) error {
	limit := uint64(e.Now().Add(-clockSkew).Unix())
	var old []string
	n := 0
	err := tx.Scan(TableBundle, "", "", func(key string, raw []byte) (bool, error) {
		b := new(mls.KeyPackageBundle)
		if err := b.UnmarshalBinary(raw); err != nil {
			return false, fmt.Errorf("sdk: a stored key package: %w", err)
		}
		n++
		if b.KeyPackage.LeafNode.Lifetime.NotAfter < limit {
			old = append(old, key)
		}
		b.Wipe()
		return n < bundlesAtMost, nil
	})
	if err != nil {
		return err
	}
	for _, key := range old {
		if err := tx.Delete(TableBundle, key); err != nil {
			return err
		}
	}
	return nil
}
