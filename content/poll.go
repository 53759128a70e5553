package content

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of a poll.
const (
	MaxQuestion    = 1200 // bytes: 300 characters
	MaxOption      = 400  // bytes: 100 characters
	MaxOptions     = 32
	MaxExplanation = 800 // bytes: 200 characters
)

// Poll asks the room a question. Votes are messages that everybody in the room
// can read: Anonymous only asks clients not to show who chose what.
type Poll struct {
	Question    string   `json:"question"`
	Options     []string `json:"options"`
	Multiple    bool     `json:"multiple,omitempty"`  // several options may be chosen
	Anonymous   bool     `json:"anonymous,omitempty"` //
	Correct     []int    `json:"correct,omitempty"`   // of a quiz: indices of the right options
	Explanation string   `json:"explanation,omitempty"`
	ClosesAt    uint64   `json:"closes_at,omitempty"` // seconds since 1970, 0 = open until closed
}

func (p Poll) check() error {
	if p.Question == "" || len(p.Options) == 0 || len(p.Options) > MaxOptions {
		return fmt.Errorf("%w: a poll has a question and 1 to %d options, this one %d", ErrLimit, MaxOptions, len(p.Options))
	}
	if err := checkText("question", p.Question, MaxQuestion); err != nil {
		return err
	}
	for _, o := range p.Options {
		if o == "" {
			return fmt.Errorf("%w: an empty option", ErrEncoding)
		}
		if err := checkText("option", o, MaxOption); err != nil {
			return err
		}
	}
	if err := checkChoice(p.Correct, len(p.Options)); err != nil {
		return err
	}
	return checkText("explanation", p.Explanation, MaxExplanation)
}

func (p Poll) parts() ([]Part, error) {
	return withFallback(DispositionRender, MediaPoll, p, p.Question+"\n• "+strings.Join(p.Options, "\n• "))
}

// Vote chooses options of the poll that the message replies to. The last vote
// of an identity counts; an empty one takes it back.
type Vote struct {
	Options []int `json:"options"` // indices, ascending, each once
}

func (v Vote) check() error           { return checkChoice(v.Options, MaxOptions) }
func (v Vote) parts() ([]Part, error) { return ownParts(DispositionUnspecified, MediaVote, v) }
func (PollClose) check() error        { return nil }
func (c PollClose) parts() ([]Part, error) {
	return ownParts(DispositionUnspecified, MediaPollClose, c)
}

// PollClose closes the poll that the message replies to. It counts from the
// poll's sender only.
type PollClose struct{}

// checkChoice demands ascending indices below n.
func checkChoice(chosen []int, n int) error {
	if !slices.IsSorted(chosen) {
		return fmt.Errorf("%w: options must be ascending", ErrEncoding)
	}
	for i, o := range chosen {
		if o < 0 || o >= n || i > 0 && chosen[i-1] == o {
			return fmt.Errorf("%w: option %d does not exist or is named twice", ErrEncoding, o)
		}
	}
	return nil
}
