package server

import (
	"net/http"
	urlpath "path"
	"strings"
	"time"
)

// Whoever is at the other end of a connection may send nothing and take nothing,
// for as long as the connection stands. So each has its time: a body to come, and
// an answer to be taken. Shorter in tests.
var (
	bodyTime = time.Minute      // for a body to come, unless its route gives it more
	takeTime = 30 * time.Second // for each takePiece of an answer
)

// takePiece is 64 KiB: who reads more slowly than 2 KB a second is not answered.
const takePiece = 64 << 10

// guard stands before all routes. It bounds the time of a body also where no route
// reads it: net/http does, before it answers, and waits for as long as it takes.
func guard(routes, unknown http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := &guarded{w, http.NewResponseController(w)}
		g.extend()
		if r.ContentLength != 0 {
			// Setting a deadline fails only where none can be set, as in tests without a socket.
			_ = g.control.SetReadDeadline(time.Now().Add(bodyTime))
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
}

// Unwrap is for [http.ResponseController], and for who takes the connection over.
func (g *guarded) Unwrap() http.ResponseWriter { return g.ResponseWriter }

func (g *guarded) extend() {
	_ = g.control.SetWriteDeadline(time.Now().Add(takeTime)) // fails only without a socket
}

// WriteHeader implements [http.ResponseWriter].
func (g *guarded) WriteHeader(status int) {
	g.extend()
	g.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter]. What net/http still holds when the
// handler has returned goes out within the time of the last piece.
func (g *guarded) Write(p []byte) (written int, err error) {
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
