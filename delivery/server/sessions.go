package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// A session is a row, found by the SHA-256 of its token. Each instance
// remembers what it found for at most a second: so long a revocation or a
// logout at another instance may go unnoticed.
const sessionFresh = time.Second

// maxSessions bounds the cache in entries of about 700 bytes.
const maxSessions = 50_000

type sessions struct {
	mu    sync.Mutex // guards known
	known map[[32]byte]*cached
}

type cached struct {
	token   [32]byte
	session delivery.Session
	until   time.Time
}

func (s *sessions) init() { s.known = map[[32]byte]*cached{} }

func (s *sessions) get(token [32]byte, now time.Time) *cached {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.known[token]; c != nil && now.Before(c.until) {
		return c
	}
	return nil
}

func (s *sessions) put(c *cached, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxSessions {
		for token, old := range s.known {
			if !now.Before(old.until) || len(s.known) >= maxSessions {
				delete(s.known, token)
			}
		}
	}
	s.known[c.token] = c
}

// forget drops what is remembered of a device. It looks at all that is remembered.
func (s *sessions) forget(device identity.DeviceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token, c := range s.known {
		if c.session.Device.ID == device {
			delete(s.known, token)
		}
	}
}

// drop drops what is remembered of one token's hash.
func (s *sessions) drop(token [32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, token)
}

var errLogIn = delivery.Refuse(delivery.CodeLogIn, "no session, or one that ended")

// lookup finds a live session by its bearer token (errLogIn).
func (s *Server) lookup(ctx context.Context, token string) (*cached, error) {
	// mutants: equivalent: no session has a token of another length; this spares the store.
	if len(token) != 43 {
		return nil, errLogIn
	}
	now := s.Now()
	hash := sha256.Sum256([]byte(token))
	if c := s.sessions.get(hash, now); c != nil {
		return c, nil
	}
	found, err := s.store.Session(ctx, hash, now.UnixMilli())
	if errors.Is(err, delivery.ErrNotFound) {
		return nil, errLogIn
	}
	if err != nil {
		return nil, err
	}
	c := &cached{token: hash, session: found, until: now.Add(sessionFresh)}
	if end := time.UnixMilli(found.ExpiresMS); end.Before(c.until) {
		c.until = end
	}
	s.sessions.put(c, now)
	return c, nil
}

// bearer authenticates a call by its Authorization header.
func (s *Server) bearer(c *call) error {
	token, ok := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return errLogIn
	}
	found, err := s.lookup(c, token)
	if err != nil {
		return err
	}
	c.from, c.who = found, found.session
	return nil
}

// A challenge is stateless: expiry ‖ 8 random bytes ‖ 16 bytes of a MAC over
// both and the device. Its answer is taken once: the challenge is spent as a
// nonce of the device's key.
const challengeLife = 2 * time.Minute

func (s *Server) challengeMAC(device identity.DeviceID, head []byte) []byte {
	return s.secrets.seal("challenge", device[:], head)[:16]
}

func (s *Server) challenge(c *call) error {
	var req delivery.ChallengeRequest
	if err := c.readJSON(&req); err != nil {
		return err
	}
	if err := s.spendAddress(c, "challenge"); err != nil {
		return err
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, identity.ChallengeSize), uint64(s.Now().Add(challengeLife).UnixMilli()))
	b = b[:16]
	if _, err := io.ReadFull(s.Random, b[8:]); err != nil {
		return err
	}
	return c.json(delivery.ChallengeResponse{Challenge: append(b, s.challengeMAC(req.Device, b)...), Home: s.Home})
}

func (s *Server) login(c *call) error {
	var req delivery.SessionRequest
	if err := c.readJSON(&req); err != nil {
		return err
	}
	if len(req.Challenge) != identity.ChallengeSize || len(req.Signature) != identity.SignatureSize || len(req.Have) != 16 || len(req.Want) != 16 {
		return bad("challenge, signature or copy counters have the wrong size")
	}
	now := s.Now()
	expires := int64(binary.BigEndian.Uint64(req.Challenge))
	if !hmac.Equal(req.Challenge[16:], s.challengeMAC(req.Device, req.Challenge[:16])) || now.UnixMilli() > expires {
		return delivery.Refuse(delivery.CodeLogIn, "the challenge is not this service's or too old: ask for another")
	}
	device, err := s.store.Device(c, req.Device)
	if errors.Is(err, delivery.ErrNotFound) {
		return delivery.Refuse(delivery.CodeNotFound, "the device is not enrolled here: enrol it first")
	}
	if err != nil {
		return err
	}
	if err := identity.VerifyLogin(device.Key, s.Home, req.Challenge, identity.Signature(req.Signature)); err != nil {
		return delivery.Refuse(delivery.CodeRefused, "the challenge is not signed by the device's key")
	}
	if err := s.spend(c, "login", req.Device.String(), 1); err != nil {
		return err
	}
	fresh, err := s.store.UseNonce(c, device.Key, [16]byte(req.Challenge[:16]), expires+challengeLife.Milliseconds())
	if err != nil {
		return err
	}
	if !fresh {
		return delivery.Refuse(delivery.CodeLogIn, "the challenge was answered before: ask for another")
	}
	random := make([]byte, 32)
	if _, err := io.ReadFull(s.Random, random); err != nil {
		return err
	}
	token := base64.RawURLEncoding.EncodeToString(random)
	open := delivery.NewSession{
		Token: sha256.Sum256([]byte(token)), Device: req.Device, ExpiresMS: now.Add(s.SessionLife).UnixMilli(), NowMS: now.UnixMilli(),
		Have: [16]byte(req.Have), Want: [16]byte(req.Want), Resume: req.Resume,
	}
	copied, err := s.store.OpenSession(c, open)
	if err != nil {
		return err
	}
	if copied && req.Resume {
		return c.json(delivery.SessionResponse{Copied: true})
	}
	s.metrics.logins.Inc()
	// The device's other sessions are over, of a copy of its profile among them.
	s.sessions.forget(req.Device)
	s.ring(c, []identity.DeviceID{req.Device}, delivery.Hint{Kind: delivery.HintSessions})
	return c.json(delivery.SessionResponse{Token: token, ExpiresMS: open.ExpiresMS, Copied: copied})
}

func (s *Server) logout(c *call) error {
	if c.from == nil {
		return bad("a signed request has no session to end")
	}
	if err := s.store.CloseSession(c, c.from.token); err != nil {
		return err
	}
	s.sessions.drop(c.from.token)
	s.ring(c, []identity.DeviceID{c.device()}, delivery.Hint{Kind: delivery.HintSessions})
	return c.nothing()
}
