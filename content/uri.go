package content

import (
	"fmt"
	"strings"

	"github.com/askucher/compax-core/identity"
)

const (
	mimiScheme = "mimi://"
	userPath   = "/u/"
	roomPath   = "/r/"
	maxDomain  = 253
	maxURIPart = 128
)

// UserURI returns mimi://<domain>/u/<identity in hex>, the form that sender_uri
// carries.
func UserURI(domain string, id identity.PublicKey) string {
	return mimiScheme + domain + userPath + id.String()
}

// RoomURI returns mimi://<domain>/r/<room>, the room being its id in UUID form.
// A room's URI is frozen at its creation: read it from the room, do not make it
// again.
func RoomURI(domain, room string) string { return mimiScheme + domain + roomPath + room }

// ParseUserURI returns the identity that a user's URI names (ErrEncoding). The
// authority is not compared with anything: an identity is the same wherever its
// account lives.
func ParseUserURI(uri string) (identity.PublicKey, error) {
	name, err := splitURI(uri, userPath)
	if err != nil {
		return identity.PublicKey{}, err
	}
	id, err := identity.ParsePublicKey(name)
	if err != nil {
		return identity.PublicKey{}, fmt.Errorf("%w: user URI: %w", ErrEncoding, err)
	}
	return id, nil
}

// ParseRoomURI returns the last element of a room's URI, the id of a room of
// ours in UUID form (ErrEncoding).
func ParseRoomURI(uri string) (string, error) { return splitURI(uri, roomPath) }

func splitURI(uri, path string) (string, error) {
	rest, ok := strings.CutPrefix(uri, mimiScheme)
	domain, name, _ := strings.Cut(rest, path)
	if !ok || domain == "" || len(domain) > maxDomain || name == "" || len(name) > maxURIPart ||
		strings.ContainsAny(domain, "/?#@") || strings.ContainsAny(name, "/?#") {
		return "", fmt.Errorf("%w: not a URI of the form mimi://domain%s…", ErrEncoding, path)
	}
	return name, nil
}
