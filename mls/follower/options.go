package follower

import (
	"time"

	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// Options is what the application brings to a decision. Server and members come
// to the same verdict when they bring the same: Now should be the time at which
// the delivery service accepted the message, not the time of reading it.
type Options struct {
	// Now is when key packages must be within their lifetime, and is told to
	// Credentials. Zero skips lifetimes. Leaves that are in the tree already are
	// never refused for their lifetime.
	Now time.Time
	// MaxLifetime bounds the total lifetime of key packages (§7.2); zero sets no
	// bound. It counts only together with Now.
	MaxLifetime time.Duration
	// Credentials judges every credential that enters the group; nil leaves
	// that to the caller, who finds the leaves in the result.
	Credentials tree.CredentialValidator
	// AppData is the application logic for AppDataUpdate (extensions draft §4.7):
	// it gives the new data of a component from the old (nil for none) and the
	// updates of one commit in order, or an error to refuse the commit. nil knows
	// no component, so that every AppDataUpdate is refused.
	AppData func(component wire.ComponentID, old []byte, updates [][]byte) ([]byte, error)
	// Succession allows the one commit that sets up a group that follows another
	// one, by ReInit or branch, to name that group's resumption PSK (§11.2,
	// §11.3). It counts in epoch 0 only.
	Succession bool
	// KeyPackages remembers key packages whose signatures were verified; nil
	// verifies each time.
	KeyPackages *KeyPackageCache
	// Parallel lets up to GOMAXPROCS goroutines verify signatures when there are
	// many: a tree, or a commit with many Adds. None survives the call.
	Parallel bool
}

// leaf gives the options for a leaf that a message carries.
func (o *Options) leaf(source wire.LeafNodeSource, groupID []byte, l tree.LeafIndex, previous *wire.LeafNode) tree.LeafOptions {
	return tree.LeafOptions{
		Source: source, GroupID: groupID, Index: l, Previous: previous,
		Now: o.Now, MaxLifetime: o.MaxLifetime, Credentials: o.Credentials,
	}
}
