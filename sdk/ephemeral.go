package sdk

import (
	"crypto"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
)

// The payload of a delivery.Ephemeral frame (docs/protocol.md, "Typing and
// presence"; ADR 0027):
//
//	nonce[24] ‖ time u64 ‖ XChaCha20-Poly1305(signature[64] ‖ kind u16 ‖ rest)
//
// big-endian, under a key of the epoch and the sender's leaf, with everything
// that stands outside as associated data. The nonce is random and long enough
// that it never comes twice, also when a profile was copied or restored. The
// signature is that of the leaf's key: a member cannot speak as another one.
const (
	ephemeralLabel = "compax-ephemeral-v1"
	ephemeralNonce = chacha20poly1305.NonceSizeX
	ephemeralHead  = ephemeralNonce + 8
	ephemeralBody  = 32  // kind and zeros: every frame of today has the same size
	ephemeralMax   = 512 // bytes of a payload that are looked at
	ephemeralMin   = ephemeralHead + ed25519Size + 2 + chacha20poly1305.Overhead
	ed25519Size    = 64
)

// Why a payload is dropped. Nobody is told: nothing depends on it.
var (
	errFrameForm   = errors.New("sdk: an ephemeral frame of another form")
	errFrameSeal   = errors.New("sdk: an ephemeral frame does not open")
	errFrameSigner = errors.New("sdk: an ephemeral frame is not signed by its leaf")
	errFrameTime   = errors.New("sdk: an ephemeral frame is old, early or repeated")
	errFrameFlood  = errors.New("sdk: ephemeral frames come too fast")
)

// ephemeralSecret is the exporter key of an epoch, from which those of its leaves
// are made: MLS-Exporter("compax-ephemeral-v1", room id, 32).
// It is behind a pointer, which is all that printing what holds it shows.
type ephemeralSecret struct{ key *[ephemeralSecretSize]byte }

const ephemeralSecretSize = 32

// copied gives a copy with a life of its own.
func (s ephemeralSecret) copied() ephemeralSecret {
	key := *s.key
	return ephemeralSecret{&key}
}

// wipe overwrites the key. There may be none.
func (s ephemeralSecret) wipe() {
	if s.key != nil {
		clear(s.key[:])
	}
}

// leafKey is the key of a leaf: HKDF-Expand-SHA256(secret, label ‖ leaf u32, 32).
func (s ephemeralSecret) leafKey(leaf uint32) ([]byte, error) {
	info := binary.BigEndian.AppendUint32([]byte(ephemeralLabel), leaf)
	return hkdf.Expand(sha256.New, s.key[:], string(info), chacha20poly1305.KeySize)
}

// origin is what stands outside a payload: where a frame belongs.
type origin struct {
	room  delivery.RoomID
	epoch uint64
	leaf  uint32
}

// associated is the associated data of a payload, which its signature covers too.
func (o origin) associated(head []byte) []byte {
	b := append([]byte(ephemeralLabel), o.room[:]...)
	b = binary.BigEndian.AppendUint64(b, o.epoch)
	b = binary.BigEndian.AppendUint32(b, o.leaf)
	return append(b, head...)
}

// sealEphemeral makes the payload that says kind at a time, Unix milliseconds.
func sealEphemeral(random io.Reader, secret ephemeralSecret, device phrase.Key, o origin, timeMS uint64, kind uint16) ([]byte, error) {
	head := make([]byte, ephemeralNonce, ephemeralMin+ephemeralBody)
	if _, err := io.ReadFull(random, head); err != nil {
		return nil, fmt.Errorf("random bytes: %w", err)
	}
	head = binary.BigEndian.AppendUint64(head, timeMS)
	body := binary.BigEndian.AppendUint16(make([]byte, 0, ephemeralBody), kind)[:ephemeralBody]
	outside := o.associated(head)
	sig, err := device.Sign(nil, append(outside[:len(outside):len(outside)], body...), crypto.Hash(0))
	if err != nil {
		return nil, err
	}
	key, err := secret.leafKey(o.leaf)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, err
	}
	return aead.Seal(head, head[:ephemeralNonce], append(sig, body...), outside), nil
}

// unverifiedFrame is a payload of the right form; nothing of it is proven.
type unverifiedFrame struct {
	head   []byte // nonce and time
	sealed []byte
}

// parseEphemeral reads a payload (errFrameForm).
func parseEphemeral(payload []byte) (unverifiedFrame, error) {
	if len(payload) < ephemeralMin || len(payload) > ephemeralMax {
		return unverifiedFrame{}, fmt.Errorf("%w: %d bytes", errFrameForm, len(payload))
	}
	return unverifiedFrame{head: payload[:ephemeralHead], sealed: payload[ephemeralHead:]}, nil
}

// timeMS is the time that the payload claims, Unix milliseconds.
func (u unverifiedFrame) timeMS() uint64 { return binary.BigEndian.Uint64(u.head[ephemeralNonce:]) }

// open verifies that the device at the leaf said it, and gives the kind. What
// stands behind the kind is for later versions (errFrameSeal, errFrameSigner).
func (u unverifiedFrame) open(secret ephemeralSecret, o origin, device identity.DevicePublicKey) (kind uint16, err error) {
	key, err := secret.leafKey(o.leaf)
	if err != nil {
		return 0, err
	}
	defer clear(key)
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return 0, err
	}
	outside := o.associated(u.head)
	plain, err := aead.Open(nil, u.head[:ephemeralNonce], u.sealed, outside)
	if err != nil {
		return 0, errFrameSeal
	}
	sig, body := plain[:ed25519Size], plain[ed25519Size:]
	if !identity.VerifyStrict(device[:], append(outside, body...), sig) {
		return 0, errFrameSigner
	}
	return binary.BigEndian.Uint16(body), nil
}
