package sim

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// botRestarts is the chance, each turn, that a bot's process is started anew. It
// then knows only what its profile holds.
const botRestarts = 0.1

// botReads is how many lines of a room a bot looks at each turn.
const botReads = 30

// bots lets every bot answer at once what it has not answered. It remembers what it
// did no longer than its process lives, and relies on the key of an answer: the same
// key is one message, however often it is sent.
func (w *World) bots(ctx context.Context) error {
	for _, p := range w.people {
		if !p.bot {
			continue
		}
		for _, d := range p.devices {
			if d.gone {
				continue
			}
			restart := w.chance(botRestarts)
			if restart || d.engine == nil || d.crash.died() {
				if err := w.boot(ctx, d); err != nil {
					return err
				}
				w.tally.BotStarts++
				d.answered = map[content.MessageID]bool{}
			}
			if err := w.answerAll(ctx, d); err != nil {
				w.tell("%s answers: %v", d, err)
				if !w.tolerable(err) {
					return fmt.Errorf("%s answers: %w", d, err)
				}
			}
		}
	}
	return nil
}

// answerAll reads and answers as one bot.
func (w *World) answerAll(ctx context.Context, d *device) error {
	if err := w.welcomeIn(ctx, d); err != nil {
		return err
	}
	for _, room := range w.rooms {
		lines, err := d.engine.History(ctx, room, 0, botReads, false)
		if err != nil {
			if w.tolerable(err) {
				continue
			}
			return err
		}
		for _, l := range lines {
			if l.Kind != sdk.LineText || d.answered[l.ID] || w.isBot(l) {
				continue
			}
			if err := w.answer(ctx, d, room, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// isBot reports whether a bot said a line: bots do not answer one another.
func (w *World) isBot(l sdk.Line) bool {
	for _, p := range w.people {
		if p.bot && p.id == l.From {
			return true
		}
	}
	return false
}

func (w *World) answer(ctx context.Context, d *device, room delivery.RoomID, l sdk.Line) error {
	sum := sha256.Sum256(append([]byte("answer of "+d.label), l.ID[:]...))
	text := fmt.Sprintf("%s to %x", d, l.ID[:6])
	sent, err := d.engine.Send(ctx, room, sdk.Draft{Text: text, ReplyTo: l.ID, Key: sdk.Key(sum[:16])})
	if err != nil {
		return err
	}
	d.answered[l.ID] = true
	if !w.replied[sent.ID] {
		w.replied[sent.ID] = true
		w.tally.Answers++
		return w.noteSaid(ctx, said{room: room, id: sent.ID, text: text, by: d, seq: sent.Seq})
	}
	return nil
}
