package content

import (
	"fmt"
	"math"
	"strings"

	"github.com/askucher/compax-core/identity"
)

// Location is a place on the map, live while LivePeriod lasts (its sender edits
// the message), a venue when it has a title.
type Location struct {
	Latitude   float64 `json:"latitude"`              // degrees, -90 to 90
	Longitude  float64 `json:"longitude"`             // degrees, -180 to 180
	Accuracy   float64 `json:"accuracy,omitempty"`    // metres
	LivePeriod uint32  `json:"live_period,omitempty"` // seconds
	Heading    int     `json:"heading,omitempty"`     // degrees, 1 to 360
	Title      string  `json:"title,omitempty"`
	Address    string  `json:"address,omitempty"`
}

func (l Location) check() error {
	if !(math.Abs(l.Latitude) <= 90) || !(math.Abs(l.Longitude) <= 180) || !(l.Accuracy >= 0) || l.Heading < 0 || l.Heading > 360 {
		return fmt.Errorf("%w: a location that is not on the map", ErrEncoding)
	}
	if err := checkText("title", l.Title, MaxTitle); err != nil {
		return err
	}
	return checkText("address", l.Address, maxAddress)
}

func (l Location) parts() ([]Part, error) {
	text := strings.TrimSpace(fmt.Sprintf("%s\n%s\ngeo:%g,%g", l.Title, l.Address, l.Latitude, l.Longitude))
	return withFallback(DispositionRender, MediaLocation, l, text)
}

// Contact hands on how to reach somebody.
type Contact struct {
	FirstName string              `json:"first_name"`
	LastName  string              `json:"last_name,omitempty"`
	Phone     string              `json:"phone,omitempty"`
	VCard     string              `json:"vcard,omitempty"`    // RFC 6350
	Identity  *identity.PublicKey `json:"identity,omitempty"` // of a person here
}

func (c Contact) check() error {
	if c.FirstName == "" || c.Phone == "" && c.VCard == "" && c.Identity == nil {
		return fmt.Errorf("%w: a contact without a name or anything to reach it by", ErrEncoding)
	}
	for _, f := range []struct {
		what, s string
		limit   int
	}{{"first name", c.FirstName, MaxName}, {"last name", c.LastName, MaxName}, {"phone", c.Phone, maxShort}, {"vCard", c.VCard, 8 << 10}} {
		if err := checkText(f.what, f.s, f.limit); err != nil {
			return err
		}
	}
	return nil
}

func (c Contact) parts() ([]Part, error) {
	text := strings.TrimSpace(c.FirstName + " " + c.LastName + "\n" + c.Phone)
	return withFallback(DispositionRender, MediaContact, c, text)
}

// Dice is an emoji with a value that its sender drew.
type Dice struct {
	Emoji string `json:"emoji"`
	Value int    `json:"value"` // 1 to 64
}

func (d Dice) check() error {
	if d.Emoji == "" || d.Value < 1 || d.Value > 64 {
		return fmt.Errorf("%w: a dice without emoji or with the value %d", ErrEncoding, d.Value)
	}
	return checkText("emoji", d.Emoji, MaxReaction)
}

func (d Dice) parts() ([]Part, error) {
	return withFallback(DispositionRender, MediaDice, d, fmt.Sprintf("%s %d", d.Emoji, d.Value))
}
