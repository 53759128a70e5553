package main

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

func (a *app) roomPublishCommand() *cobra.Command {
	req := local.PublishRequest{}
	cmd := command("publish CHAT", "Put a group into its home's public list", args("CHAT"), nil)
	cmd.Long = `Puts a group into the public list of its home, where anybody finds it (compax room
find) and may ask to be added (compax room ask). What the list says, the title and
--about, is the only part of a chat that the service can read. Only an admin may.
Nobody gets in by asking: a member adds them, or nobody does.`
	cmd.Example = example(`compax room publish -p ada Tea --about "Everything about tea"`)
	cmd.Flags().StringVar(&req.Title, "title", "", "`TITLE` in the list (default the chat's own title)")
	cmd.Flags().StringVar(&req.About, "about", "", "`TEXT` that describes it")
	cmd.ValidArgsFunction = a.completeChat
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(req.Title) > sdk.MaxListingTitle || !utf8.ValidString(req.Title):
			return usage("--title has at most %d bytes of UTF-8", sdk.MaxListingTitle)
		case len(req.About) > sdk.MaxListingAbout || !utf8.ValidString(req.About):
			return usage("--about has at most %d bytes of UTF-8", sdk.MaxListingAbout)
		}
		return a.onChat(cmd.Context(), args[0], func(ctx context.Context, p local.Profile, id delivery.RoomID) error {
			req.Chat = id
			if _, err := p.Publish(ctx, req); err != nil {
				return err
			}
			return a.result(map[string]any{"chat": id, "public": true}, "")
		})
	}
	return cmd
}

func (a *app) roomUnpublishCommand() *cobra.Command {
	cmd := command("unpublish CHAT", "Take a group out of the public list", args("CHAT"), func(cmd *cobra.Command, args []string) error {
		return a.onChat(cmd.Context(), args[0], func(ctx context.Context, p local.Profile, id delivery.RoomID) error {
			if _, err := p.Unpublish(ctx, local.RoomRequest{Chat: id}); err != nil {
				return err
			}
			return a.result(map[string]any{"chat": id, "public": false}, "")
		})
	})
	cmd.ValidArgsFunction = a.completeChat
	return cmd
}

func (a *app) roomFindCommand() *cobra.Command {
	cmd := command("find [TEXT]", "Search the public list of rooms, or show all of it", args("[TEXT]"), func(cmd *cobra.Command, args []string) error {
		return a.withLocal(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			found, err := p.FindRooms(ctx, local.FindRequest{Text: strings.Join(args, " ")})
			if err != nil {
				return err
			}
			return a.showListings(found)
		})
	})
	cmd.Long = `Searches the public list of the account's home, on the service: it learns what is
searched for.`
	return cmd
}

func (a *app) showListings(found []local.Listing) error {
	for _, l := range found {
		if a.json {
			if err := a.emit(l); err != nil {
				return err
			}
			continue
		}
		text := a.paint(a.outTTY, bold, short(line(l.Title), 40)) + a.paint(a.outTTY, dim, "  "+people(l.Members)) + "\n    " + l.Chat.String()
		if about := line(l.About); about != "" {
			text += "\n    " + short(about, max(40, a.width-4))
		}
		if err := a.result(nil, text); err != nil {
			return err
		}
	}
	switch {
	case a.json:
	case len(found) == 0:
		a.say("No such room in the public list.")
	default:
		a.say("Ask to be added: compax room ask ID --note TEXT")
	}
	return nil
}

func people(n int) string {
	if n == 1 {
		return "1 person"
	}
	return fmt.Sprintf("%d people", n)
}

func (a *app) roomAskCommand() *cobra.Command {
	var note string
	cmd := command("ask ID", "Ask to be added to a room of the public list", args("ID"), nil)
	cmd.Long = `Asks the admins of a room of the public list to be added; compax room find shows the
ids. They see who asks, and the note. When one of them adds this account, the room
is among its chats.`
	cmd.Flags().StringVar(&note, "note", "", "`TEXT` that they read beside the name")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := delivery.ParseRoomID(args[0])
		if err != nil {
			return hint(usage("%q is no room's id", args[0]), "compax room find shows them")
		}
		if len(note) > sdk.MaxAskNote || !utf8.ValidString(note) {
			return usage("--note has at most %d bytes of UTF-8", sdk.MaxAskNote)
		}
		return a.withLocal(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			if _, err := p.Ask(ctx, local.AskRequest{Chat: id, Note: note}); err != nil {
				return err
			}
			if !a.json {
				a.say("Asked. When they add you, the room is in: compax chats")
			}
			return a.result(map[string]any{"chat": id, "asked": true}, "")
		})
	}
	return cmd
}

// roomDeclineCommand forgets an invitation, or somebody who asks to be added.
func (a *app) roomDeclineCommand() *cobra.Command {
	cmd := command("decline CHAT [WHO]", "Forget a stranger's invitation, or WHO asks to be added", args("CHAT", "[WHO]"), func(cmd *cobra.Command, args []string) error {
		req := local.MemberRequest{}
		if len(args) == 2 {
			w, err := who(args[1])
			if err != nil {
				return err
			}
			req.Who = w
		}
		return a.with(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			id, err := chat(ctx, p, args[0])
			if err != nil {
				return err
			}
			if req.Chat = id; len(args) == 2 {
				_, err = p.DeclineAsk(ctx, req)
			} else {
				_, err = p.Decline(ctx, local.RoomRequest{Chat: id})
			}
			if err != nil {
				return err
			}
			return a.result(local.Room{Chat: id}, "")
		})
	})
	cmd.ValidArgsFunction = a.completeChatThenPeople
	return cmd
}
