package client

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// Enrol makes a device known to the service. The same credential again changes
// nothing.
func (c *Client) Enrol(ctx context.Context, credential []byte) error {
	return c.json(ctx, call{route: delivery.RouteEnrol, open: true}, delivery.EnrolRequest{Credential: credential}, nil)
}

// Login opens a session now, whether or not one is held.
func (c *Client) Login(ctx context.Context) error {
	c.dropToken(c.held())
	c.mu.Lock()
	c.kept = ""
	c.mu.Unlock()
	_, err := c.session(ctx)
	return err
}

// Ensure opens a session when none is held.
func (c *Client) Ensure(ctx context.Context) error {
	_, err := c.admitted(ctx)
	return err
}

// Logout ends the session that is held, if any.
func (c *Client) Logout(ctx context.Context) error {
	held := c.held()
	if held == "" {
		return nil
	}
	err := c.json(ctx, call{route: delivery.RouteLogout, once: true}, nil, nil)
	c.dropToken(held)
	return err
}

// dropToken forgets a token that is of no use any more, unless another call has
// logged in meanwhile: a further login would end the session of that one.
func (c *Client) dropToken(used string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token == used {
		c.token = ""
	}
}

func (c *Client) held() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

// session gives the bearer token, logging in when there is none (ErrCopied).
func (c *Client) session(ctx context.Context) (string, error) {
	if t := c.held(); t != "" {
		return t, nil
	}
	if c.Account == nil {
		return "", delivery.Refuse(delivery.CodeLogIn, "this client has no account to log in with")
	}
	c.login.Lock()
	defer c.login.Unlock()
	c.mu.Lock()
	t, had, cut := c.token, c.had, c.cut
	c.mu.Unlock()
	switch {
	case t != "":
		return t, nil // somebody else has just logged in
	case cut:
		return "", ErrCopied
	}
	if known, err := c.resume(ctx); known || err != nil {
		return c.held(), err
	}
	device := c.Account.Device()
	var challenge delivery.ChallengeResponse
	if err := c.json(ctx, call{route: delivery.RouteChallenge, open: true}, delivery.ChallengeRequest{Device: device}, &challenge); err != nil {
		return "", err
	}
	signature, err := c.Account.SignLogin(challenge.Home, challenge.Challenge)
	if err != nil {
		return "", fmt.Errorf("delivery/client: sign the login: %w", err)
	}
	have, want, err := c.Account.CopyCounter(ctx)
	if err != nil {
		return "", fmt.Errorf("delivery/client: copy counter: %w", err)
	}
	var s delivery.SessionResponse
	req := delivery.SessionRequest{Device: device, Challenge: challenge.Challenge, Signature: signature, Have: have[:], Want: want[:], Resume: had}
	// once: a challenge is answered once; the next try asks for another.
	if err := c.json(ctx, call{route: delivery.RouteLogin, open: true, once: true}, req, &s); err != nil {
		return "", err
	}
	if s.Copied && had {
		c.mu.Lock()
		c.cut = true
		c.mu.Unlock()
		return "", errors.Join(ErrCopied, c.Account.CutOff(ctx))
	}
	if s.Token == "" {
		return "", fmt.Errorf("%w: a session without a token", ErrGarbage)
	}
	if err := c.Account.LoggedIn(ctx, want, s.Copied); err != nil {
		return "", err
	}
	c.mu.Lock()
	c.token, c.had = s.Token, true
	c.mu.Unlock()
	return s.Token, nil
}

// Token is a session's bearer token. It prints as what it is, without its value.
type Token string

// Format implements fmt.Formatter.
func (Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "session token") } // Format has no error to give

// Leave ends this client's use of its session without ending the session, and gives it
// to whoever goes on in the same place: empty when it has none. Who stores it binds it
// to that place, so that a copy of the profile logs in, which is how copies are told.
func (c *Client) Leave() Token {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := Token(c.token)
	if left == "" {
		left = c.kept
	}
	c.token, c.kept = "", ""
	return left
}

// Distrust ends this client's use of its session, which another copy of the profile may
// hold as well: the next call logs in, and by that ends every other session of the
// device. When the other copy has logged in before, this one is told (ErrCopied).
func (c *Client) Distrust() { _ = c.Leave() } // nobody goes on with it

// resume takes up the session that an earlier process left, when the service still
// knows it. known is false when there is none to take up. The caller holds c.login.
func (c *Client) resume(ctx context.Context) (known bool, err error) {
	c.mu.Lock()
	kept := c.kept
	c.mu.Unlock()
	if kept == "" {
		return false, nil
	}
	err = c.json(ctx, call{route: delivery.RouteKeyCount, open: true, token: string(kept)}, nil, nil)
	var refusal *delivery.Error
	if err != nil && (!errors.As(err, &refusal) || refusal.Code == delivery.CodeRetry || refusal.Code == delivery.CodeSlowDown) {
		return false, err // whether it is over was not said
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept = ""; err == nil {
		c.token, c.had = string(kept), true
	}
	return err == nil, nil
}

const loginWait = 5 * time.Second

// admitted is session for who can wait: a device that has logged in too often in a
// short time, as a script does that runs a command for each message, comes in when the
// service says that it may. Longer than loginWait it does not wait: that is for who
// asked to hear.
func (c *Client) admitted(ctx context.Context) (string, error) {
	for try := 1; ; try++ {
		token, err := c.session(ctx)
		var refusal *delivery.Error
		if !errors.As(err, &refusal) || refusal.Code != delivery.CodeSlowDown || refusal.RetryAfter > loginWait || try >= c.Tries {
			return token, err
		}
		if err := c.Sleep(ctx, c.pause(try, refusal)); err != nil {
			return "", fmt.Errorf("%w: %w", ErrOffline, err)
		}
	}
}

// maxWorkBits bounds what a client is ready to solve: 2²⁴ hashes are seconds.
const maxWorkBits = 24

// solve answers a demand for work over the entry of a body, or over the body
// itself when it is no append.
func solve(ctx context.Context, w delivery.Work, device identity.DeviceID, body []byte) ([]byte, error) {
	if w.Bits > maxWorkBits || len(w.Seed) > 64 {
		return nil, delivery.Refuse(delivery.CodeSlowDown, fmt.Sprintf("the service demands %d bits of work, more than this client gives", w.Bits))
	}
	entry := body
	if a, err := delivery.ParseAppend(body); err == nil {
		entry = a.Entry
	}
	hash := sha256.Sum256(entry)
	nonce := make([]byte, 8)
	for n := uint64(0); ; n++ {
		if n&0xffff == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", ErrOffline, ctx.Err())
		}
		binary.BigEndian.PutUint64(nonce, n)
		if delivery.WorkBits(w.Seed, device, hash, nonce) >= w.Bits {
			return nonce, nil
		}
	}
}
