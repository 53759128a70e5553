package server

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"

	"github.com/askucher/compax-core/delivery"
)

// panicked turns the panic of a route into an answer, and into a line of the log that
// names places in the program and no person, device or room: what the panic says may
// hold any of them, and so may the arguments in a stack. An answer that has begun
// cannot be taken back: its connection ends.
func (s *Server) panicked(rt route, c *call, p any) error {
	if p == http.ErrAbortHandler {
		panic(p) // somebody wants just that
	}
	what := fmt.Sprintf("%T", p)
	if err, ok := p.(error); ok && errors.As(err, new(runtime.Error)) {
		what = err.Error() // an index, a nil: no data
	}
	s.Log.Error("delivery service: a fault of the program", "route", rt.pattern, "panic", what, "at", frames())
	if g, ok := c.w.(*guarded); ok && g.begun {
		panic(http.ErrAbortHandler)
	}
	return delivery.Refuse(delivery.CodeRetry, "the service could not answer: a fault of its own")
}

// frames lists where a panic comes from, the place first, at most sixteen.
func frames() (out []string) {
	pcs := make([]uintptr, 16)
	walk := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs)]) // without Callers, frames, panicked and its caller
	for {
		f, more := walk.Next()
		if f.Function != "" {
			out = append(out, fmt.Sprintf("%s:%d", f.Function, f.Line))
		}
		if !more {
			return out
		}
	}
}
