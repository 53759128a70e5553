package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

func (a *app) chatsCommand() *cobra.Command {
	cmd := command("chats", "List the chats of a profile, and who wants to talk", args(), func(cmd *cobra.Command, _ []string) error {
		return a.with(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			chats, err := p.Chats(ctx, local.None{})
			if err != nil {
				return err
			}
			defer a.tellFailed(ctx, p)
			return a.showChats(chats)
		})
	})
	cmd.Long = `Lists the chats of a profile, the latest first. A request is a room that somebody
else made: nothing is sent to it and nothing fetched from it until you accept it
(compax room accept) or decline it.`
	return cmd
}

func (a *app) showChats(chats []local.Chat) error {
	if a.json {
		for _, c := range chats {
			if err := a.emit(c); err != nil {
				return err
			}
		}
		return nil
	}
	if len(chats) == 0 {
		a.say("No chats yet. Make one: compax room new --title TITLE, or --direct @username")
		return nil
	}
	ids := a.chatIDs(chats)
	var t table
	for _, c := range chats {
		t.add(ids[c.Chat], short(line(c.Title), titleColumns), chatNote(c), a.stamp(c.Time), line(c.Last))
		t.below(a.chatDetails(c, ids[c.Chat])...)
	}
	t.width = a.tableWidth()
	return t.write(a.out, func(column int, cell string) string {
		switch column {
		case 1:
			return a.paint(a.outTTY, bold, cell)
		case 2:
			return a.paint(a.outTTY, "33", cell)
		default:
			return a.paint(a.outTTY, dim, cell)
		}
	})
}

const titleColumns = 24

// tableWidth is how wide a table may be: as the terminal, and anything elsewhere.
func (a *app) tableWidth() int {
	if a.outTTY {
		return a.width
	}
	return 0
}

// chatIDs is what names each chat: on a terminal as much of its id as tells it from
// the others, else all of it.
func (a *app) chatIDs(chats []local.Chat) map[delivery.RoomID]string {
	out := map[delivery.RoomID]string{}
	for _, c := range chats {
		id := c.Chat.String()
		n := shortChat
		for _, other := range chats {
			for o := other.Chat.String(); o != id && n < len(id) && o[:n] == id[:n]; {
				n++
			}
		}
		if !a.outTTY {
			n = len(id)
		}
		out[c.Chat] = id[:n]
	}
	return out
}

// shortChat is as much of a chat's id as is shown at least, in characters: the
// rules' version, the home, and 16 bits of chance.
const shortChat = 13

// chatDetails is what a person needs to answer: who invites, with the number to
// compare, and who asks to be added.
func (a *app) chatDetails(c local.Chat, id string) (out []string) {
	if c.Request && c.From != nil {
		who := c.From.String()
		if c.With != "" {
			who = "@" + c.With + "  " + who
		}
		out = append(out, "from "+who, known(c)+", "+purpose(c)+", at home "+c.Chat.Home().String())
		if c.Safety != "" {
			out = append(out, c.Safety) // compared by voice, before accepting
		}
		out = append(out, "compax room accept "+id+", or decline")
	}
	if usual := sdk.SuiteName(sdk.Suites()[0]); c.Suite != "" && c.Suite != usual {
		out = append(out, "cipher suite "+c.Suite)
	}
	for _, ask := range c.Asks {
		who := at(ask.Username)
		if who == "" {
			who = ask.Identity.String()
		}
		text := strings.TrimSpace(short(line(ask.Name), nameColumns) + " asks to be added")
		if ask.Note != "" {
			text += ": " + line(ask.Note)
		}
		out = append(out, text, "compax room add "+id+" "+who)
	}
	return out
}

// purpose says what a request is for.
func purpose(c local.Chat) string {
	switch {
	case c.Kind == "direct":
		return "to talk with you alone"
	case c.Members > 1:
		return fmt.Sprintf("into a group of %d people", c.Members)
	}
	return "into a group"
}

// known says whether this profile knows who invites. A name is not asked for: of a
// request nothing is fetched.
func known(c local.Chat) string {
	if c.With != "" {
		return "met before"
	}
	return "nobody you know"
}

func (a *app) stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return a.when(*t)
}

// chatNote says what is worth knowing of a chat: whether it asks something, is
// over, or has news.
func chatNote(c local.Chat) string {
	switch {
	case c.Request:
		return "request"
	case c.Status != "" && c.Status != string(sdk.StatusOpen):
		return stands(sdk.Status(c.Status))
	case c.Unread > 0:
		return fmt.Sprintf("%d new", c.Unread)
	case len(c.Asks) > 0:
		return fmt.Sprintf("%d ask", len(c.Asks))
	}
	return ""
}

// stands says to a person where they stand with a chat.
func stands(s sdk.Status) string {
	switch s {
	case sdk.StatusOut:
		return "no longer in it"
	case sdk.StatusLeft:
		return "left"
	case sdk.StatusSucceeded:
		return "goes on in a new room"
	case sdk.StatusStuck:
		return "cannot be followed"
	}
	return string(s)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func at(username string) string {
	if username == "" {
		return ""
	}
	return "@" + username
}
