package content

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Media types of the draft (section 7.1).
const (
	MediaPlain    = "text/plain;charset=utf-8"
	MediaMarkdown = "text/markdown;variant=GFM-MIMI"
	MediaHTML     = "text/html;charset=utf-8"
)

// The media types of our own parts. Each is JSON in UTF-8, at most MaxOwnPart
// bytes. Fields that a reader does not know are ignored; a part that lacks what
// it needs is Unknown.
const (
	MediaEntities    = "application/vnd.compax.entities+json"     // formatting of the text before it
	MediaFileInfo    = "application/vnd.compax.file-info+json"    // what is known of the attachment before it
	MediaOptions     = "application/vnd.compax.options+json"      // how the message wants to be shown
	MediaForwarded   = "application/vnd.compax.forwarded+json"    // where the message comes from
	MediaReel        = "application/vnd.compax.reel+json"         // the message is a reel
	MediaRoom        = "application/vnd.compax.room+json"         // title, picture and settings of the room
	MediaProfile     = "application/vnd.compax.profile+json"      // the sender's profile
	MediaVerified    = "application/vnd.compax.verified+json"     // an identity was verified
	MediaReceipt     = "application/vnd.compax.receipt+json"      // delivered and read messages
	MediaReadMark    = "application/vnd.compax.read-mark+json"    // how far an account has read, for its own devices
	MediaPin         = "application/vnd.compax.pin+json"          // a message is pinned or unpinned
	MediaSuccessor   = "application/vnd.compax.successor+json"    // the room goes on elsewhere
	MediaCall        = "application/vnd.compax.call+json"         // a call starts or ends
	MediaPoll        = "application/vnd.compax.poll+json"         // a poll
	MediaVote        = "application/vnd.compax.vote+json"         // a vote in the poll replied to
	MediaPollClose   = "application/vnd.compax.poll-close+json"   // the poll replied to is closed
	MediaLocation    = "application/vnd.compax.location+json"     // a place
	MediaContact     = "application/vnd.compax.contact+json"      // a person's contact
	MediaDice        = "application/vnd.compax.dice+json"         // an emoji with a random value
	MediaKeyboard    = "application/vnd.compax.keyboard+json"     // reply_markup of the Bot API, byte for byte
	MediaTap         = "application/vnd.compax.tap+json"          // a button of the message replied to was tapped
	MediaTapAnswer   = "application/vnd.compax.tap-answer+json"   // a bot answers a tap
	MediaWidget      = "application/vnd.compax.widget+json"       // a card, byte for byte
	MediaWidgetEvent = "application/vnd.compax.widget-event+json" // what somebody did on a card, byte for byte
	MediaWallet      = "application/vnd.compax.wallet+json"       // the group wallet's, byte for byte
	MediaSelf        = "application/vnd.compax.self+json"         // an account's own state, in its self room, byte for byte
)

// MaxOwnPart bounds one of our own parts in bytes.
const MaxOwnPart = 64 << 10

// readers says which item a part of an own media type is.
var readers = map[string]func([]byte) (Item, error){
	MediaEntities:    readJSON[entities],
	MediaFileInfo:    readJSON[FileInfo],
	MediaOptions:     readJSON[Options],
	MediaForwarded:   readJSON[Forwarded],
	MediaReel:        readJSON[Reel],
	MediaRoom:        readJSON[RoomInfo],
	MediaProfile:     readJSON[Profile],
	MediaVerified:    readJSON[Verified],
	MediaReceipt:     readJSON[Receipt],
	MediaReadMark:    readJSON[ReadMark],
	MediaPin:         readJSON[Pin],
	MediaSuccessor:   readJSON[Successor],
	MediaCall:        readJSON[Call],
	MediaPoll:        readJSON[Poll],
	MediaVote:        readJSON[Vote],
	MediaPollClose:   readJSON[PollClose],
	MediaLocation:    readJSON[Location],
	MediaContact:     readJSON[Contact],
	MediaDice:        readJSON[Dice],
	MediaTap:         readJSON[Tap],
	MediaTapAnswer:   readJSON[TapAnswer],
	MediaKeyboard:    func(b []byte) (Item, error) { return Keyboard{string(b)}, checkRaw(string(b)) },
	MediaWidget:      func(b []byte) (Item, error) { return Widget{string(b)}, checkRaw(string(b)) },
	MediaWidgetEvent: func(b []byte) (Item, error) { return WidgetEvent{string(b)}, checkRaw(string(b)) },
	MediaWallet:      func(b []byte) (Item, error) { return Wallet{string(b)}, checkRaw(string(b)) },
	MediaSelf:        func(b []byte) (Item, error) { return Self{string(b)}, checkRaw(string(b)) },
}

// ownItem is an item that is one JSON part.
type ownItem interface {
	Item
	check() error // ErrEncoding, ErrLimit
}

func readJSON[T ownItem](b []byte) (Item, error) {
	var v T
	if len(b) > MaxOwnPart {
		return nil, fmt.Errorf("%w: own part of %d bytes, at most %d allowed", ErrLimit, len(b), MaxOwnPart)
	}
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("%w: own part is not UTF-8", ErrEncoding)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("%w: own part: %w", ErrEncoding, err)
	}
	if err := v.check(); err != nil {
		return nil, err
	}
	return v, nil
}

// ownPart makes the part of an item that is one JSON object.
func ownPart(disposition Disposition, mediaType string, v ownItem) (Part, error) {
	if err := v.check(); err != nil {
		return Part{}, err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return Part{}, fmt.Errorf("%w: %s: %w", ErrEncoding, mediaType, err)
	}
	if len(b) > MaxOwnPart {
		return Part{}, fmt.Errorf("%w: own part of %d bytes, at most %d allowed", ErrLimit, len(b), MaxOwnPart)
	}
	return Part{Disposition: disposition, Content: Single{mediaType, b}}, nil
}

// ownParts is ownPart for items of one part.
func ownParts(disposition Disposition, mediaType string, v ownItem) ([]Part, error) {
	p, err := ownPart(disposition, mediaType, v)
	if err != nil {
		return nil, err
	}
	return []Part{p}, nil
}

// withFallback offers a text to those who do not know our part.
func withFallback(disposition Disposition, mediaType string, v ownItem, text string) ([]Part, error) {
	p, err := ownPart(disposition, mediaType, v)
	if err != nil {
		return nil, err
	}
	plain := Part{Disposition: DispositionRender, Content: Single{MediaPlain, []byte(text)}}
	return []Part{{Disposition: DispositionRender, Content: Multi{ChooseOne, []Part{p, plain}}}}, nil
}

// mediaTypeOf splits a content type into its lower-case type and a lookup of
// its parameters.
func mediaTypeOf(contentType string) (string, func(name string) string) {
	kind, rest, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(kind)), func(name string) string {
		for p := range strings.SplitSeq(rest, ";") {
			k, v, _ := strings.Cut(p, "=")
			if strings.EqualFold(strings.TrimSpace(k), name) {
				return strings.ToLower(strings.Trim(strings.TrimSpace(v), `"`))
			}
		}
		return ""
	}
}
