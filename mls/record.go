package mls

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"sort"

	"github.com/askucher/compax-core/mls/wire"
)

// Record is one row of a group's stored state. Keys are unique inside one group
// and at most 135 bytes; values are opaque, versioned and carry a checksum.
// Values hold secrets: store them where only this client reads.
type Record struct {
	Key   string
	Value []byte
}

// Format writes the key and the size of the value, whatever the verb is.
func (r Record) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "Record(%s, %d bytes)", r.Key, len(r.Value))
}

// MarshalJSON always fails: a value is stored as it is and not written as text.
func (r Record) MarshalJSON() ([]byte, error) { return nil, errSecretMarshal }

// Delta is what one step changes in the stored state: rows to write and rows to
// delete, in one transaction. A step that uses a message key deletes or
// overwrites the row that held it, so used keys are gone from the store too.
type Delta struct {
	Put    []Record
	Delete []string
}

// Empty says that nothing is to be written.
func (d Delta) Empty() bool { return len(d.Put) == 0 && len(d.Delete) == 0 }

// Then gives the delta of two steps taken one after the other, for callers that
// write several steps at once.
func (d Delta) Then(next Delta) Delta {
	rows := make(map[string][]byte, len(d.Put)+len(d.Delete)+len(next.Put)+len(next.Delete))
	for _, step := range []Delta{d, next} {
		for _, key := range step.Delete {
			rows[key] = nil
		}
		for _, r := range step.Put {
			rows[r.Key] = r.Value
		}
	}
	var merged Delta
	for key, value := range rows {
		if value == nil {
			merged.Delete = append(merged.Delete, key)
		} else {
			merged.Put = append(merged.Put, Record{Key: key, Value: value})
		}
	}
	merged.sort()
	return merged
}

// ApplyTo changes a state held as a map, for stores that keep one.
func (d Delta) ApplyTo(rows map[string][]byte) {
	for _, key := range d.Delete {
		delete(rows, key)
	}
	for _, r := range d.Put {
		rows[r.Key] = r.Value
	}
}

func (d *Delta) put(key string, body []byte) {
	d.Put = append(d.Put, Record{Key: key, Value: sealRecord(key, body)})
}

func (d *Delta) drop(key string) { d.Delete = append(d.Delete, key) }

func (d *Delta) sort() {
	sort.Slice(d.Put, func(i, j int) bool { return d.Put[i].Key < d.Put[j].Key })
	sort.Strings(d.Delete)
}

// recordVersion is the version written; every version up to it is read.
const recordVersion = 1

// checksumSize is how many bytes of a SHA-256 end a record.
const checksumSize = 8

// sealRecord frames a record's body: a version byte, the body, a checksum that
// also covers the key, so that a row in the wrong place is noticed.
func sealRecord(key string, body []byte) []byte {
	value := append(make([]byte, 0, 1+len(body)+checksumSize), recordVersion)
	value = append(value, body...)
	sum := newChecksums().of(key, value)
	return append(value, sum[:]...)
}

// checksums computes checksums one after the other, in the same memory.
type checksums struct {
	sha hash.Hash
	buf []byte
}

func newChecksums() *checksums { return &checksums{sha: sha256.New()} }

// of gives the checksum of a record, whose value is without one.
func (c *checksums) of(key string, value []byte) [checksumSize]byte {
	c.sha.Reset()
	c.buf = wire.AppendOpaque(c.buf[:0], key)
	c.sha.Write(c.buf)
	c.sha.Write(value)
	c.buf = c.sha.Sum(c.buf[:0])
	return [checksumSize]byte(c.buf)
}

// openRecord checks a record and gives its body.
func (c *checksums) openRecord(r Record) ([]byte, error) {
	n := len(r.Value)
	if n < 1+checksumSize {
		return nil, fmt.Errorf("%w: record %q is truncated", ErrState, r.Key)
	}
	if c.of(r.Key, r.Value[:n-checksumSize]) != [checksumSize]byte(r.Value[n-checksumSize:]) {
		return nil, fmt.Errorf("%w: record %q does not match its checksum", ErrState, r.Key)
	}
	if v := r.Value[0]; v == 0 || v > recordVersion {
		return nil, fmt.Errorf("%w: record %q has version %d, this program reads up to %d", ErrState, r.Key, v, recordVersion)
	}
	return r.Value[1 : n-checksumSize], nil
}

// The keys of the records. Epochs are written with 16 hex digits, so that they
// sort.
const (
	keyCore          = "core"        // epoch, own leaf, secrets of the epoch, private keys
	keyTreeBase      = "tree"        // public state at some epoch
	prefixTree       = "tree/"       // + epoch: the change that led to it
	prefixPast       = "past/"       // + epoch: a past epoch
	prefixNode       = "node/"       // + epoch/index: a secret of the secret tree
	prefixLeaf       = "ratchet/"    // + epoch/leaf: both ratchets of a leaf
	prefixExport     = "export/"     // + index: a secret of the exporter tree
	prefixOwn        = "own/"        // + hash: a commit of our own
	prefixUpdate     = "update/"     // + reference: the private key of an update we proposed
	prefixProposal   = "proposal/"   // + number, from 0: a proposal that is held
	prefixResumption = "resumption/" // + epoch: its resumption_psk
)

func epochKey(prefix string, epoch uint64) string { return fmt.Sprintf("%s%016x", prefix, epoch) }

func epochIndexKey(prefix string, epoch uint64, index uint32) string {
	return fmt.Sprintf("%s%016x/%08x", prefix, epoch, index)
}

// MarshalRecords writes records as one byte string, for callers that store a
// group as one value.
func MarshalRecords(records []Record) []byte {
	var b []byte
	for _, r := range records {
		b = wire.AppendOpaque(b, r.Key)
		b = wire.AppendOpaque(b, r.Value)
	}
	return b
}

// UnmarshalRecords reads what MarshalRecords wrote. Errors wrap ErrState.
func UnmarshalRecords(data []byte) ([]Record, error) {
	r := wire.NewReader(data)
	var records []Record
	for r.More() {
		records = append(records, Record{Key: string(r.Opaque()), Value: r.Opaque()})
	}
	if err := r.Finish(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	return records, nil
}
