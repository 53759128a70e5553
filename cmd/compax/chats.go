package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

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
	var t table
	for _, c := range chats {
		t.add(c.Chat.String(), short(line(c.Title), 30), chatNote(c), a.stamp(c.Time), short(line(c.Last), 40))
	}
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
	case c.Status != "" && c.Status != "open":
		return c.Status
	case c.Unread > 0:
		return fmt.Sprintf("%d new", c.Unread)
	}
	return ""
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
