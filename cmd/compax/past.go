package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

func (a *app) accountArchiveCommand() *cobra.Command {
	cmd := command("archive", "Write what this device has read into the account's archive, now", args(), func(cmd *cobra.Command, _ []string) error {
		return a.with(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			got, err := p.Archive(ctx, local.None{})
			if err != nil {
				return err
			}
			a.say("The archive holds what this device has read: %s written now.", plural(got.Segments, "segment"))
			if a.json {
				return a.emit(got)
			}
			return nil
		})
	})
	cmd.Long = `Seals what this device has read for the account's own devices, and keeps it at the
service, which cannot read it: a device that is linked later, or comes from the
phrase, shows it. It happens by itself, within an hour of use and before a device is
approved; this does it at once, for instance before a device is given away. It also
writes again what the service has lost, and reads what is missing on this device.
Files, and messages that disappear, are not in the archive.

There is no switch: every device of an account archives, and this command deletes
nothing, here or at the service. The service keeps a piece for as long as it is
configured to after it was written last (archive_days in its /info). A new device
shows what it took from the archive as history, not as new messages; compax history
says which part that is, and which part no device has archived.`
	return cmd
}

// tellPast says what a history has of the time before this device, and what not.
// Who has been there from the beginning hears nothing, and told is false.
func (a *app) tellPast(ctx context.Context, p local.Profile, id delivery.RoomID) (told bool) {
	past, err := p.Past(ctx, local.RoomRequest{Chat: id})
	if err != nil {
		if !errors.Is(err, sdk.ErrRequest) && !errors.Is(err, sdk.ErrNoRoom) {
			a.say("compax: what was said before this device came: %s", clean(explain(err).Detail))
		}
		return true
	}
	sentences := pastSentences(past)
	for _, sentence := range sentences {
		a.say("compax: %s", sentence)
	}
	return len(sentences) > 0
}

func pastSentences(p local.Past) (out []string) {
	if p.Before == 0 && len(p.Missing) == 0 && len(p.Withheld) == 0 {
		return nil
	}
	switch {
	case p.Never:
		out = append(out, "this device was never in the chat")
	case p.Before > 0:
		out = append(out, fmt.Sprintf("this device came into the chat at %d", p.Before))
	}
	if len(p.Read) > 0 {
		out = append(out, fmt.Sprintf("%s came from the account's archive; their files can be fetched only while the service keeps them", ranges(p.Read)))
	}
	if p.Going {
		return append(out, "the account's archive was not read to its end yet, so more may come: run compax history again when the service can be reached")
	}
	if len(p.Withheld) > 0 {
		kept := "for a few days"
		if p.Days > 0 {
			kept = "for " + plural(p.Days, "day")
		}
		out = append(out, fmt.Sprintf("%s cannot be shown here though another device had archived it: it is older than the archive is kept (%s), or the service does not show it", ranges(p.Withheld), kept))
	}
	if len(p.Missing) > 0 {
		out = append(out, fmt.Sprintf("%s cannot be shown here: no device of this account has archived it", ranges(p.Missing)))
	}
	if len(p.Missing)+len(p.Withheld) > 0 {
		out = append(out, "if another device still shows it, run compax account archive there, and then here")
	}
	return out
}

// ranges names at most a handful of ranges.
func ranges(list []sdk.Span) string {
	var out []string
	for i, s := range list {
		switch {
		case i == 5:
			return strings.Join(out, ", ") + fmt.Sprintf(" and %d more ranges", len(list)-i)
		case s.From == s.To:
			out = append(out, fmt.Sprint(s.From))
		default:
			out = append(out, fmt.Sprintf("%d to %d", s.From, s.To))
		}
	}
	return strings.Join(out, ", ")
}
