package server

import (
	"net/http"
	urlpath "path"
	"strings"
	"time"
)

// Patience is how long a service waits for who is at the other end of a
// connection: they may send nothing and take nothing for as long as it stands.
type Patience struct {
	Body  time.Duration // for a body to come, and as long again for each 4 MiB of it; a minute
	Piece time.Duration // for each 64 KiB of an upload to come; 30 s
	Take  time.Duration // for each 64 KiB of an answer to be taken; 30 s
	Hello time.Duration // for a socket to say who it is; 10 s
}

func (p *Patience) defaults() {
	def(&p.Body, time.Minute)
	def(&p.Piece, 30*time.Second)
	def(&p.Take, 30*time.Second)
	def(&p.Hello, 10*time.Second)
}

// takePiece is 64 KiB: who reads more slowly than 2 KB a second is not answered, and
// who uploads more slowly not waited for.
const takePiece = 64 << 10

// guard stands before all routes. It bounds the time of a body also where no route
// reads it: net/http does, before it answers, and waits for as long as it takes.
func guard(patience Patience, routes, unknown http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := &guarded{ResponseWriter: w, control: http.NewResponseController(w), take: patience.Take}
		g.extend()
		if r.ContentLength != 0 {
			// Setting a deadline fails only where none can be set, as in tests without a socket.
			_ = g.control.SetReadDeadline(time.Now().Add(patience.Body))
		}
		// Nobody who means a route writes it in a roundabout way, and nobody is sent
		// on to what was meant.
		if p := r.URL.Path; !strings.HasPrefix(p, "/") || p != urlpath.Clean(p) {
			unknown.ServeHTTP(g, r)
			return
		}
		routes.ServeHTTP(g, r)
	})
}

// guarded is an answer each piece of which must be taken in time.
type guarded struct {
	http.ResponseWriter
	control *http.ResponseController
	take    time.Duration
	until   time.Time // the deadline that stands
	begun   bool      // something of the answer is written
}

// Unwrap is for [http.ResponseController], and for who takes the connection over.
func (g *guarded) Unwrap() http.ResponseWriter { return g.ResponseWriter }

// extend gives the next piece its time, or a sixteenth less: setting a deadline is
// work, and most answers are written at once.
func (g *guarded) extend() {
	now := time.Now()
	if g.until.Sub(now) >= g.take-g.take/16 {
		return
	}
	g.until = now.Add(g.take)
	_ = g.control.SetWriteDeadline(g.until) // fails only without a socket
}

// WriteHeader implements [http.ResponseWriter].
func (g *guarded) WriteHeader(status int) {
	g.begun = g.begun || status >= http.StatusOK
	g.extend()
	g.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter]. What net/http still holds when the
// handler has returned goes out within the time of the last piece.
func (g *guarded) Write(p []byte) (written int, err error) {
	g.begun = true
	for {
		n := min(len(p), takePiece)
		g.extend()
		took, err := g.ResponseWriter.Write(p[:n])
		written += took
		if p = p[n:]; err != nil || len(p) == 0 {
			return written, err
		}
	}
}
