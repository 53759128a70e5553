package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// call is one request under way.
type call struct {
	context.Context
	w    http.ResponseWriter
	r    *http.Request
	who  delivery.Session // zero when the route needs no session
	from *cached          // the session's cache entry; nil with an envelope
	body []byte           // whole, unless the route streams

	holds held // of the budgets of bodies, until the request is done
}

// device is the caller's device id.
func (c *call) device() identity.DeviceID { return c.who.Device.ID }

// access says how a route authenticates.
type access int

const (
	anybody  access = iota // no session
	session                // bearer token or envelope, body read whole
	streamed               // bearer token or envelope, body left in r.Body
)

// route is one line of the table in routes.go.
type route struct {
	pattern string // a constant of package delivery
	access  access
	limit   int64 // of the body, in bytes
	serve   func(*Server, *call) error
}

func (s *Server) handle(rt route) http.Handler {
	m := s.metrics.route(rt.pattern)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		w.Header()[timeHeader] = []string{strconv.FormatInt(s.nowMS(), 10)}
		c := &call{Context: r.Context(), w: w, r: r}
		defer func() { c.holds.release(0) }()
		err := s.served(rt, c)
		status := http.StatusOK
		if err != nil {
			status = s.refuse(c, err)
		}
		m.done(status, time.Since(start))
	})
}

// served admits a call and runs its route.
func (s *Server) served(rt route, c *call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked(rt, c, p)
		}
	}()
	if err := s.admit(rt, c); err != nil {
		return err
	}
	return rt.serve(s, c)
}

// timeHeader is delivery.HeaderTime in the form that net/http keeps.
var timeHeader = http.CanonicalHeaderKey(delivery.HeaderTime)

// admit reads the body within its bound and finds out who calls.
func (s *Server) admit(rt route, c *call) error {
	header := c.r.Header.Get(delivery.HeaderEnvelope)
	switch {
	case rt.access == anybody:
		return s.readBody(c, rt.limit)
	case header != "":
		return s.openEnvelope(rt, c, header)
	}
	if err := s.bearer(c); err != nil {
		return err
	}
	if rt.access == streamed {
		return nil
	}
	return s.readBody(c, rt.limit)
}

// refuse writes an error as a problem document and gives the status.
func (s *Server) refuse(c *call, err error) int {
	e := s.refusal(c, err)
	status := e.Code.Status()
	b, err := json.Marshal(e.Problem())
	if err != nil {
		b = []byte(`{"type":"about:blank","status":500}`)
	}
	h := c.w.Header()
	h.Set("Content-Type", delivery.ProblemType)
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
	}
	if e.Code == delivery.CodeLogIn {
		h.Set("WWW-Authenticate", "Bearer")
	}
	c.w.WriteHeader(status)
	_, _ = c.w.Write(b) // the caller is gone: nobody to tell
	return status
}

// refusal makes any error one that says what to do. What is not a refusal yet
// is a fault of the medium: retry.
func (s *Server) refusal(c *call, err error) *delivery.Error {
	var e *delivery.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, delivery.ErrNotFound):
		return delivery.Refuse(delivery.CodeNotFound, "no such thing, or not for this device")
	case errors.Is(err, delivery.ErrFull):
		s.failed("writing to a full disk", err)
		return delivery.Refuse(delivery.CodeFull, "the service's disk is full; nothing was kept")
	case errors.Is(err, delivery.ErrLimit):
		return delivery.Refuse(delivery.CodeTooLarge, "over a limit of the service")
	case errors.Is(err, delivery.ErrRevoked):
		return delivery.Refuse(delivery.CodeRevoked, "this device was revoked by its owner")
	case errors.Is(err, delivery.ErrExists), errors.Is(err, delivery.ErrChanged):
		return delivery.Refuse(delivery.CodeConflict, "it exists already, or changed since it was read")
	case c.Err() != nil:
		return delivery.Refuse(delivery.CodeRetry, "the request was given up")
	}
	s.failed("a request", err)
	return delivery.Refuse(delivery.CodeRetry, "the service could not answer now")
}

func bad(detail string) error { return delivery.Refuse(delivery.CodeBadRequest, detail) }

// json answers with a JSON object.
func (c *call) json(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	return c.send("application/json", b)
}

// binary answers with bytes.
func (c *call) binary(b []byte) error { return c.send(delivery.BinaryType, b) }

var jsonType = []string{"application/json"}

func (c *call) send(mediaType string, b []byte) error {
	h := c.w.Header()
	if mediaType == jsonType[0] {
		h["Content-Type"] = jsonType // shared: who sets a header replaces its values
	} else {
		h["Content-Type"] = []string{mediaType}
	}
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	_, _ = c.w.Write(b) // the caller is gone: nobody to tell
	return nil
}

// nothing answers 204.
func (c *call) nothing() error {
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// number reads a decimal query parameter of at most delivery.MaxNumber; absent is def.
func (c *call) number(name string, def uint64) (uint64, error) {
	v := c.r.URL.Query().Get(name)
	if v == "" {
		return def, nil
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil || n > delivery.MaxNumber {
		return 0, bad("the parameter " + name + " is not a number from 0 to 2^62")
	}
	return n, nil
}

// room reads the room of the path. One that another home orders is sent there.
func (s *Server) room(c *call) (delivery.RoomID, error) {
	id, err := delivery.ParseRoomID(c.r.PathValue("room"))
	if err != nil {
		return id, bad("the path names no room")
	}
	return id, s.here(id)
}

func (s *Server) here(id delivery.RoomID) error {
	if home := id.Home(); home != s.Home {
		return &delivery.Error{Code: delivery.CodeGoElsewhere, Detail: "another home orders this room", Home: &home}
	}
	return nil
}

// address is where a request comes from, in IPv6 the /64 of it. It is the zero one
// for loopback, which has no budget: that is the operator, or a proxy whose
// Config.ClientAddress was not set.
func (s *Server) address(c *call) netip.Addr {
	host := ""
	if s.ClientAddress != nil {
		host = s.ClientAddress(c.r)
	} else if h, _, err := net.SplitHostPort(c.r.RemoteAddr); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.IsLoopback() {
		return netip.Addr{}
	}
	if ip = ip.Unmap().WithZone(""); ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			ip = p.Addr()
		}
	}
	return ip
}

// spendAddress is spend for who has not said who they are.
func (s *Server) spendAddress(c *call, name string) error {
	ip := s.address(c)
	if !ip.IsValid() {
		return nil
	}
	return s.spend(c, name, ip.String(), 1)
}
