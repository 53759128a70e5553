package interop

import "testing"

// A peer is one implementation: it makes clients that are in at most one group.
type peer interface {
	name() string
	info() info
	client(t testing.TB, suite uint16, name string) client
}

// info is what a peer says of itself: its version, its cipher suites, and which
// of the features it offers (features_test.go).
type info struct {
	Peer   string   `json:"peer"`
	Suites []uint16 `json:"suites"`
	Can    []string `json:"can"`
}

// client is a client of any peer. Messages are MLSMessages. What a client commits
// it applies at once: the worlds here have no contention.
type client interface {
	keyPackage() ([]byte, error)
	create(group []byte) error
	commit(commitRequest) (committed, error)
	join(welcome []byte) error
	handle(message []byte) (handled, error)
	propose(proposal) ([]byte, error)
	seal(data []byte) ([]byte, error)
	// load drops the group from memory and reads it back from the store.
	load() error
	groupInfo() ([]byte, error)
	// externalJoin gives the commit by which the client entered, again if it is
	// a member already (resync).
	externalJoin(info []byte, resync bool) ([]byte, error)
	psk(id, secret []byte) error
	// reinit commits a ReInit to a group of the id and suite; reinitCreate makes
	// that group, with the key packages of the others, who enter by reinitJoin.
	reinit(group []byte, suite uint16) (committed, error)
	reinitCreate(group []byte, suite uint16, packages [][]byte) (committed, error)
	reinitJoin(welcome, tree []byte) error
	branch(group []byte, packages [][]byte) (committed, error)
	branchJoin(welcome, tree []byte) error
	// successorPackage makes a key package for a group that follows this one, of
	// another suite perhaps.
	successorPackage(suite uint16) ([]byte, error)
	state() (state, error)
}

// commitRequest is one commit: proposals by value, beside all that are held.
type commitRequest struct {
	Adds    [][]byte
	Removes []uint32
	PSKs    [][]byte // ids of external keys
	Private bool     // as PrivateMessage
}

type committed struct {
	Commit, Welcome []byte
	Tree            []byte // of a successor group, when the Welcome does not carry it
	NS              int64  // how long it took inside the peer
}

type handled struct {
	Kind string // application, proposal or commit
	Data []byte
	NS   int64
}

// proposal is one proposal that is sent on its own.
type proposal struct {
	Type       string // add, remove, update, psk, self_remove
	KeyPackage []byte
	Leaf       uint32
	PSK        []byte
}

// state is what all members must agree on, and the client's own leaf.
type state struct {
	Epoch         uint64
	Authenticator []byte
	Exported      []byte // 32 bytes, label "interop", context "context"
	Leaf          uint32
	Active        bool
	Members       []member
}

type member struct {
	Leaf     uint32
	Identity []byte
}
