package scripts

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// patience is how often in a row a command may be refused that has to succeed: what
// it needs may be on its way still.
const patience = 30

// until runs a command until it is acknowledged, and says when the first try began;
// ok is false when ctx ended before.
func (w *soaking) until(ctx context.Context, args ...string) (out string, began time.Time, ok bool) {
	began = time.Now()
	for refused := 0; ctx.Err() == nil && !w.t.Failed(); {
		out, err := w.client(w.t.Context(), append(args, "--json")...)
		switch outcome(out, err) {
		case "":
			return out, began, true
		case "?":
			refused = 0
		default:
			if refused++; refused == patience {
				w.t.Error(err)
			}
		}
	}
	return "", began, false
}

// rests waits a while, or until ctx ends.
func rests(ctx context.Context, choices *rand.Rand) {
	timer := time.NewTimer(time.Duration(choices.IntN(5000)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// comeAndGo takes somebody out of the chat and lets them in again.
func (w *soaking) comeAndGo(ctx context.Context, r *reader, choices *rand.Rand) {
	for ctx.Err() == nil && !w.t.Failed() {
		rests(ctx, choices)
		leave := []string{"room", "remove", "--profile", "ada", w.chat, "@" + r.name}
		if choices.IntN(3) == 0 {
			leave = []string{"room", "leave", "--profile", r.name, w.chat}
		}
		_, began, ok := w.until(ctx, leave...)
		if !ok {
			w.stops(r, began)
			return
		}
		w.turns(r, false, began)
		w.count("left")
		rests(ctx, choices)
		_, began, ok = w.until(ctx, "room", "add", "--profile", "ada", w.chat, "@"+r.name)
		if ok {
			_, _, ok = w.until(ctx, "room", "accept", "--profile", r.name, w.chat)
		}
		if !ok {
			w.stops(r, began)
			return
		}
		w.turns(r, true, began)
		w.count("came")
	}
}

func (w *soaking) count(what string) {
	w.all.Lock()
	defer w.all.Unlock()
	w.done[what]++
}

// linkDevices links a further device to one of the people, has it listen and talk,
// and, half of the time, revokes it after a while.
func (w *soaking) linkDevices(ctx context.Context, people []string, choices *rand.Rand) {
	const most = 6 // each listens and talks until the end
	for n := 0; n < most && ctx.Err() == nil && !w.t.Failed(); n++ {
		owner := people[choices.IntN(len(people))]
		r, device := w.link(ctx, owner, fmt.Sprintf("%s-%d", owner, n))
		if r == nil {
			return
		}
		r.tolerates = []string{revoked}
		w.count("linked")
		lives, dies := context.WithCancel(ctx)
		defer dies()
		mouth := w.choices(r.name)
		w.actors.Go(func() { w.listen(lives, r) })
		w.actors.Go(func() { w.chatter(lives, r, mouth) })
		rests(ctx, choices)
		if choices.IntN(2) == 0 {
			continue
		}
		dies()       // it may be in the middle of a last word
		w.forgets(r) // a revoked device reads nothing more, also of before
		if _, _, ok := w.until(ctx, "devices", "revoke", "--profile", owner, device); !ok {
			return
		}
		w.turns(r, false, time.Now())
		w.count("revoked")
	}
}

// link makes a profile a device of somebody, and waits until it is in the chat.
func (w *soaking) link(ctx context.Context, owner, name string) (r *reader, device string) {
	out, _, ok := w.until(ctx, "devices", "ticket", "--profile", owner)
	if !ok {
		return nil, ""
	}
	var ticket struct{ Ticket string }
	w.decode(out, &ticket)
	offer := ""
	for offer == "" && ctx.Err() == nil {
		out, _ := w.client(w.t.Context(), "account", "link", "--profile", name, "--wait=false", "--json", ticket.Ticket) // it ends with 3 in any case
		for line := range strings.Lines(out) {
			var said struct{ Offer string }
			if json.Unmarshal([]byte(line), &said) == nil && said.Offer != "" {
				offer = said.Offer
			}
		}
	}
	if offer == "" {
		return nil, ""
	}
	if _, _, ok := w.until(ctx, "devices", "approve", "--profile", owner, offer); !ok {
		return nil, ""
	}
	out, _, ok = w.until(ctx, "account", "link", "--profile", name, "--wait=false", ticket.Ticket)
	if !ok {
		return nil, ""
	}
	for line := range strings.Lines(out) {
		var self struct{ Device string }
		if json.Unmarshal([]byte(line), &self) == nil && self.Device != "" {
			device = self.Device
		}
	}
	if device == "" {
		w.t.Errorf("linking says no device: %q", out)
		return nil, ""
	}
	if _, _, ok := w.until(ctx, "history", "--profile", name, w.chat); !ok {
		return nil, ""
	}
	return w.reader(name), device
}

// listen keeps a listener running; each is killed sooner or later. What all of them
// printed together holds no row twice that does not say so.
func (w *soaking) listen(ctx context.Context, r *reader) {
	for ctx.Err() == nil && !w.t.Failed() {
		out, err := w.client(ctx, "listen", "--profile", r.name, "--chat", w.chat, "--json") // it ends by being killed
		w.print(r, out)
		if code := outcome(out, err); code != "" && code != "?" && code != notIn && ctx.Err() == nil {
			w.t.Error(err)
		}
	}
}

// print notes what a listener printed.
func (w *soaking) print(r *reader, out string) {
	for line := range strings.Lines(out) {
		var row row
		if json.Unmarshal([]byte(line), &row) != nil || row.ID == "" {
			continue // the last line may be cut
		}
		key := row.Kind + " " + row.ID
		if r.shown[key] && !row.Again {
			w.t.Errorf("%s was shown #%d twice: %.200s", r.name, row.Seq, line)
		}
		r.shown[key] = true
	}
}
