package interop

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mlstest"
)

var recordTo = flag.String("record", "", "write the runs down as cases of this directory, for package mls to replay")

// A recorder writes down what clients of the engine saw in one world. A nil
// recorder and its nil recordings do nothing.
type recorder struct {
	Now int64 `json:"now"` // seconds since 1970
	// Clients is one client, and itself again in each group that follows its last.
	Clients []*recording `json:"clients"`
}

// recording is what one client saw: its keys, and events in order.
type recording struct {
	Name   string  `json:"name"`
	Suite  uint16  `json:"suite"`
	Signer []byte  `json:"signer"` // private signature key
	Events []event `json:"events"`

	client   *mlstest.Client
	recorder *recorder
	from     *recording // whose group this one's group follows
}

// event is one thing that happened to a client. Bytes are base64.
type event struct {
	Do string `json:"do"` // bundle, psk, load, join, handle or expect
	// Data is a stored bundle, stored records, a Welcome, a message, or a key.
	Data []byte `json:"data,omitempty"`
	// ID is an external key's, or the tree beside a Welcome.
	ID []byte `json:"id,omitempty"`
	// Kind and Content are what came of handling a message.
	Kind    string `json:"kind,omitempty"`
	Content []byte `json:"content,omitempty"`
	// Epoch, Authenticator, Exported and Members are what all members agreed on.
	Epoch         uint64   `json:"epoch,omitempty"`
	Authenticator []byte   `json:"authenticator,omitempty"`
	Exported      []byte   `json:"exported,omitempty"`
	Members       []string `json:"members,omitempty"`
}

// newRecorder writes to path when the test has passed.
func newRecorder(t testing.TB, path string) *recorder {
	r := &recorder{}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		r.Clients = r.telling()
		text, err := json.MarshalIndent(r, "", "\t")
		if err == nil {
			err = os.WriteFile(path, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return r
}

// telling picks the client that processed most, and those whose groups follow its
// group: one point of view tells the whole run.
func (r *recorder) telling() []*recording {
	var best *recording
	for _, one := range r.Clients {
		if one.from == nil && (best == nil || one.handled() > best.handled()) {
			best = one
		}
	}
	list := []*recording{best}
	for _, one := range r.Clients {
		if one.from == list[len(list)-1] {
			list = append(list, one)
		}
	}
	return list
}

func (r *recording) handled() (n int) {
	for _, e := range r.Events {
		if e.Do == "handle" {
			n++
		}
	}
	return n
}

// successor begins a recording of the same client in a group that follows.
func (r *recording) successor(c *mlstest.Client, now time.Time) *recording {
	if r == nil {
		return nil
	}
	next := r.recorder.client(c, now)
	next.from = r
	return next
}

func (r *recorder) client(c *mlstest.Client, now time.Time) *recording {
	if r == nil {
		return nil
	}
	r.Now = now.Unix()
	one := &recording{Name: c.Name, Suite: uint16(c.Suite.ID()), Signer: c.Signer.Private(), client: c, recorder: r}
	r.Clients = append(r.Clients, one)
	return one
}

func (r *recording) add(e event) {
	if r != nil {
		r.Events = append(r.Events, e)
	}
}

func (r *recording) bundle(b *mls.KeyPackageBundle) {
	if r == nil {
		return
	}
	data, err := b.MarshalBinary()
	if err != nil {
		panic(err)
	}
	r.add(event{Do: "bundle", Data: data})
}

// load writes the client's stored state down, after what it did itself.
func (r *recording) load() {
	if r != nil {
		r.add(event{Do: "load", Data: mls.MarshalRecords(r.client.Records())})
	}
}

func (r *recording) psk(id, secret []byte) { r.add(event{Do: "psk", ID: id, Data: secret}) }

// join keeps the tree that came beside a Welcome as the event's ID.
func (r *recording) join(welcome, tree []byte) { r.add(event{Do: "join", Data: welcome, ID: tree}) }

func (r *recording) handle(message []byte, h handled) {
	r.add(event{Do: "handle", Data: message, Kind: h.Kind, Content: h.Data})
}

func (r *recording) expect(s state) {
	if r == nil || !s.Active {
		return
	}
	e := event{Do: "expect", Epoch: s.Epoch, Authenticator: s.Authenticator, Exported: s.Exported}
	for _, m := range s.Members {
		e.Members = append(e.Members, string(m.Identity))
	}
	r.add(e)
}
