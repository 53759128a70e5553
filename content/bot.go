package content

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/askucher/compax-core/identity"
)

// Keyboard is the reply_markup of the Bot API that belongs to the message, as
// the bot wrote it, byte for byte.
type Keyboard struct {
	JSON string
}

func (k Keyboard) parts() ([]Part, error) { return rawPart(MediaKeyboard, k.JSON) }

// Widget is a card that belongs to the message, byte for byte; package widget
// knows what is inside.
type Widget struct {
	JSON string
}

func (w Widget) parts() ([]Part, error) { return rawPart(MediaWidget, w.JSON) }

// WidgetEvent is what somebody did on the card of the message replied to.
type WidgetEvent struct {
	JSON string
}

func (w WidgetEvent) parts() ([]Part, error) { return rawPart(MediaWidgetEvent, w.JSON) }

// Wallet is a message of the group wallet: a proposal, a signature, an
// announcement of keys. Package wallet knows what is inside.
type Wallet struct {
	JSON string
}

func (w Wallet) parts() ([]Part, error) { return rawPart(MediaWallet, w.JSON) }

// Self is a message between the devices of one account, in its self room.
type Self struct {
	JSON string
}

func (s Self) parts() ([]Part, error) { return rawPart(MediaSelf, s.JSON) }

func rawPart(mediaType, text string) ([]Part, error) {
	if err := checkRaw(text); err != nil {
		return nil, fmt.Errorf("%s: %w", mediaType, err)
	}
	return []Part{{Disposition: DispositionUnspecified, Content: Single{mediaType, []byte(text)}}}, nil
}

// checkRaw demands JSON in UTF-8 of at most MaxOwnPart bytes.
func checkRaw(text string) error {
	if len(text) > MaxOwnPart {
		return fmt.Errorf("%w: own part of %d bytes, at most %d allowed", ErrLimit, len(text), MaxOwnPart)
	}
	if !utf8.ValidString(text) || !json.Valid([]byte(text)) {
		return fmt.Errorf("%w: own part is not JSON", ErrEncoding)
	}
	return nil
}

const (
	maxTapData    = 1024
	maxTapAnswer  = 1024
	maxTapAddress = 2048
)

// Tap says that its sender tapped a button under the message replied to. Its
// message id is the id of the callback.
type Tap struct {
	Data string `json:"data"` // callback_data of the button
}

func (t Tap) check() error {
	if t.Data == "" {
		return fmt.Errorf("%w: a tap without data", ErrEncoding)
	}
	return checkText("tap data", t.Data, maxTapData)
}
func (t Tap) parts() ([]Part, error) { return ownParts(DispositionUnspecified, MediaTap, t) }

// TapAnswer is a bot's answer to a tap, for the person who tapped.
type TapAnswer struct {
	Tap       MessageID          `json:"tap"`
	Tapper    identity.PublicKey `json:"tapper"`
	Text      string             `json:"text,omitempty"`
	Alert     bool               `json:"alert,omitempty"` // in a dialog rather than in passing
	URL       string             `json:"url,omitempty"`
	CacheTime uint32             `json:"cache_time,omitempty"` // seconds
}

func (a TapAnswer) check() error {
	if a.Tap.IsZero() {
		return fmt.Errorf("%w: an answer to no tap", ErrEncoding)
	}
	if err := a.Tapper.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	if err := checkText("answer", a.Text, maxTapAnswer); err != nil {
		return err
	}
	return checkText("URL", a.URL, maxTapAddress)
}
func (a TapAnswer) parts() ([]Part, error) {
	return ownParts(DispositionUnspecified, MediaTapAnswer, a)
}
