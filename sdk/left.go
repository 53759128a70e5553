package sdk

import (
	"encoding/hex"

	"github.com/askucher/compax-core/delivery/client"
)

// Left is a session on its way from one process on a profile to the next.
type Left struct {
	Sealed []byte // by LeaveSession; empty = nothing was left
	// Place names where it was left, so exactly that a copy of the profile lies
	// elsewhere. What was sealed for one place opens at no other.
	Place []byte
}

const settingSession = "session at " // and the place

// LeaveSession ends the use of this engine's session and gives it to the next process on this
// profile, sealed for one place; nil when there is no session. What is called after it
// logs in again. It is called once, right before Close, and what it gives is used once:
// a session that lies about twice lets two copies of a profile speak at a time.
func (e *Engine) LeaveSession(place []byte) ([]byte, error) {
	token := e.client.Leave()
	if token == "" || len(place) == 0 {
		return nil, nil
	}
	return seal(e.Random, e.SealKey, settingSession+hex.EncodeToString(place), []byte(token))
}

// kept is the session that the last process left here; empty when what it left is of
// another place or damaged, which is no fault: the engine logs in.
func (e *Engine) kept() client.Token {
	if len(e.Left.Sealed) == 0 || len(e.Left.Place) == 0 {
		return ""
	}
	token, err := unseal(e.SealKey, settingSession+hex.EncodeToString(e.Left.Place), e.Left.Sealed)
	if err != nil {
		return ""
	}
	e.logins.Store(1) // as after a login, every room is read before anything is sent there
	return client.Token(token)
}
