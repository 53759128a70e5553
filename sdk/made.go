package sdk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"

	"github.com/askucher/compax-core/delivery"
)

// A commit of this device can come back in the log when its keys are gone here: one that
// a restored service refused, which others kept and offered again, and one that came in
// from outside, whose answer was lost. It was not another copy of this profile that sent
// it, and nothing but its hash can tell.

// settingMade and the id of a room hold the SHA-256 of the latest commits that this
// device sent there, 32 bytes each, in the order in which it sent or gave up on them.
const settingMade = "commits."

// madeAtMost bounds how many are remembered of a room: a device that comes back after
// more tries than that, none of which it heard of, takes itself for a copy, and comes in
// again all the same.
const madeAtMost = 64

// keepMade remembers a commit of this device, before its keys may be lost.
func keepMade(tx Tx, id delivery.RoomID, entry []byte) error {
	hashes, err := tx.Get(TableSetting, settingMade+id.String())
	if err != nil {
		return err
	}
	hash := sha256.Sum256(entry)
	if held(hashes, hash) {
		return nil
	}
	hashes = append(slices.Clone(hashes), hash[:]...)
	return tx.Put(TableSetting, settingMade+id.String(), hashes[max(0, len(hashes)-madeAtMost*sha256.Size):])
}

// made reports whether a commit is one that keepMade remembers.
func made(tx Tx, id delivery.RoomID, entry []byte) (bool, error) {
	hashes, err := tx.Get(TableSetting, settingMade+id.String())
	return held(hashes, sha256.Sum256(entry)), err
}

func held(hashes []byte, hash [32]byte) bool {
	for ; len(hashes) >= sha256.Size; hashes = hashes[sha256.Size:] {
		if bytes.Equal(hashes[:sha256.Size], hash[:]) {
			return true
		}
	}
	return false
}

// whyUnheard is why a device comes in again that reads such a commit of its own.
const whyUnheard = "a change of the chat by this device was taken, and this device did not hear of it"

// madeHere is made, in a transaction of its own.
func (e *Engine) madeHere(ctx context.Context, r *room, entry delivery.Entry) (mine bool, err error) {
	err = e.Store.View(ctx, func(tx Tx) (err error) {
		mine, err = made(tx, r.rec.ID, entry.Bytes)
		return err
	})
	return mine, err
}
