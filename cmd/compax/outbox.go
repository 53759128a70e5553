package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/sdk/local"
)

func (a *app) outboxCommand() *cobra.Command {
	cmd := command("outbox", "List what was said and has not arrived, and why", args(), func(cmd *cobra.Command, _ []string) error {
		return a.withLocal(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			unsent, err := p.Outbox(ctx, local.None{})
			if err != nil {
				return err
			}
			return a.showOutbox(ctx, p, unsent)
		})
	})
	cmd.Long = `Lists the messages that have no number yet. What waits goes out by itself with the
next command that reaches the service. What the service refused for good stays here
with the cause, until it is sent again (resend) or dropped.`
	cmd.AddCommand(
		a.onUnsent("resend ID…", "Send again what was refused, or now what waits", func(ctx context.Context, p local.Profile, r local.UnsentRequest) error {
			sent, err := p.Resend(ctx, r)
			if err != nil {
				return err
			}
			return a.sent(sent)
		}),
		a.onUnsent("drop ID…", "Forget what was refused, or what never left this device", func(ctx context.Context, p local.Profile, r local.UnsentRequest) error {
			if _, err := p.Discard(ctx, r); err != nil {
				return err
			}
			return a.result(map[string]any{"chat": r.Chat, "id": r.ID, "dropped": true}, "")
		}))
	return cmd
}

// unsentID is how much of a message's id is shown, in characters: enough to name it.
const unsentID = 12

func (a *app) showOutbox(ctx context.Context, p local.Profile, unsent []local.Unsent) error {
	v := a.view(ctx, p, true)
	for _, u := range unsent {
		if a.json {
			if err := a.emit(u); err != nil {
				return err
			}
			continue
		}
		state := a.paint(a.outTTY, dim, "waits")
		if u.Failed {
			state = a.paint(a.outTTY, red, "failed: ") + short(line(u.Cause), max(20, a.width-10))
		}
		what := u.Row
		what.Cause = ""
		var t table
		t.add(u.ID[:unsentID], a.when(u.Time), short(v.title(u.Chat), nameColumns), short(line(a.body(what)), max(20, a.width-unsentID-nameColumns-20)))
		if err := t.write(a.out, func(column int, cell string) string {
			if column == 3 {
				return cell
			}
			return a.paint(a.outTTY, dim, cell)
		}); err != nil {
			return err
		}
		if err := a.result(nil, "    "+state); err != nil {
			return err
		}
	}
	if len(unsent) == 0 && !a.json {
		a.say("Everything was sent.")
	}
	return nil
}

// onUnsent makes a command about messages of the outbox, named by the beginning of
// their ids, or all that failed.
func (a *app) onUnsent(use, short string, run func(context.Context, local.Profile, local.UnsentRequest) error) *cobra.Command {
	var everything bool
	cmd := command(use, short, nil, func(cmd *cobra.Command, names []string) error {
		if everything == (len(names) > 0) {
			return usage("name messages by their ids, or give --all")
		}
		return a.withLocal(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			unsent, err := p.Outbox(ctx, local.None{})
			if err != nil {
				return err
			}
			var chosen []local.Unsent
			for _, u := range unsent {
				if everything && u.Failed {
					chosen = append(chosen, u)
				}
			}
			for _, name := range names {
				u, err := unsentBy(unsent, name)
				if err != nil {
					return err
				}
				chosen = append(chosen, u)
			}
			if len(chosen) == 0 {
				if !a.json {
					a.say("Nothing has failed.")
				}
				return a.result(map[string]any{"failed": 0}, "")
			}
			for _, u := range chosen {
				if err := run(ctx, p, local.UnsentRequest{Chat: u.Chat, ID: u.ID}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	cmd.Flags().BoolVar(&everything, "all", false, "all that failed")
	cmd.ValidArgsFunction = a.completeUnsent
	return cmd
}

// minUnsentPrefix is how much of an id names a message, in characters.
const minUnsentPrefix = 6

func unsentBy(unsent []local.Unsent, name string) (local.Unsent, error) {
	var found []local.Unsent
	for _, u := range unsent {
		if len(name) >= minUnsentPrefix && strings.HasPrefix(u.ID, strings.ToLower(name)) {
			found = append(found, u)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return local.Unsent{}, hint(usage("%q is no message of the outbox", name), "compax outbox lists them")
	}
	return local.Unsent{}, hint(usage("%q may be any of %d messages", name, len(found)), "give more of the id")
}

// tellFailed says that the outbox holds something that needs a person.
func (a *app) tellFailed(ctx context.Context, p local.Profile) {
	if a.json {
		return
	}
	self, err := p.Self(ctx, local.None{})
	if err == nil && self.Failed > 0 {
		a.say("compax: %s could not be sent: compax outbox", plural(self.Failed, "message"))
	}
}
