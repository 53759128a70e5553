package main

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

func (a *app) roomCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "room", Short: "Make rooms, and say who is in them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.roomNewCommand(), a.roomRenameCommand(), a.roomUpgradeCommand(),
		a.roomMember("add CHAT WHO…", "Add people, by @username or identity", local.Profile.Add),
		a.roomMember("remove CHAT WHO…", "Take people out, with all their devices", local.Profile.Remove),
		a.roomChange("accept CHAT", "Join a room that a stranger invites to", local.Profile.Accept),
		a.roomDeclineCommand(),
		a.roomChange("leave CHAT", "Leave a room", local.Profile.Leave),
		a.roomPublishCommand(), a.roomUnpublishCommand(), a.roomFindCommand(), a.roomAskCommand())
	return cmd
}

func (a *app) roomNewCommand() *cobra.Command {
	var title, direct, suite string
	cmd := command("new --title TITLE | --direct WHO", "Make a group, or a direct chat with somebody", args(), nil)
	cmd.Long = `Makes a room and prints its id, which the other commands take as CHAT. A direct
chat has exactly two people; asking for the same one again gives the same room.

--suite chooses the cipher suite (RFC 9420 §17.1): 1, which is the usual one, 3, or
hybrid, which also withstands who records today and has a quantum computer later.`
	cmd.Example = example(`compax room new -p ada --title "Tea"`, `compax room new -p ada --direct @bob`)
	cmd.Flags().StringVar(&title, "title", "", "`TITLE` of the group")
	cmd.Flags().StringVar(&direct, "direct", "", "the other one, `WHO`: @username or identity")
	must(cmd.RegisterFlagCompletionFunc("direct", a.completePeople))
	suiteFlag(cmd, &suite)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		req := local.NewRoomRequest{Key: newKey(), Title: strings.TrimSpace(title), Suite: suite}
		if _, err := sdk.ParseSuite(suite); err != nil {
			return usage("--suite: %v", err)
		}
		switch {
		case (req.Title == "") == (direct == ""):
			return usage("give --title for a group, or --direct for a chat of two")
		case direct == "":
			if err := titled(req.Title); err != nil {
				return err
			}
		}
		if direct != "" {
			w, err := who(direct)
			if err != nil {
				return err
			}
			req.Direct = &w
		}
		return a.with(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			room, err := p.NewRoom(ctx, req)
			if err != nil {
				return err
			}
			return a.result(room, room.Chat.String())
		})
	}
	return cmd
}

func suiteFlag(cmd *cobra.Command, suite *string) {
	cmd.Flags().StringVar(suite, "suite", "1", "cipher `SUITE`: 1, 3 or hybrid")
	must(cmd.RegisterFlagCompletionFunc("suite", cobra.FixedCompletions([]cobra.Completion{"1", "3", "hybrid"}, cobra.ShellCompDirectiveNoFileComp)))
}

func (a *app) roomUpgradeCommand() *cobra.Command {
	req := local.UpgradeRequest{}
	cmd := command("upgrade CHAT --suite SUITE", "Move a room to another cipher suite", args("CHAT"), nil)
	cmd.Long = `Moves the conversation into a new room with the same people, roles and settings, of
another cipher suite, and prints its id. Everybody's client follows by itself; the
old room can still be read. Only an admin can do this. Run again, it goes on where
it stopped, or prints where the room has moved to.`
	cmd.Example = example(`compax room upgrade -p ada Tea --suite hybrid`)
	suiteFlag(cmd, &req.Suite)
	must(cmd.MarkFlagRequired("suite"))
	cmd.ValidArgsFunction = a.completeChat
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := sdk.ParseSuite(req.Suite); err != nil {
			return usage("--suite: %v", err)
		}
		return a.onChat(cmd.Context(), args[0], func(ctx context.Context, p local.Profile, id delivery.RoomID) error {
			req.Chat = id
			room, err := p.Upgrade(ctx, req)
			if err != nil {
				return err
			}
			return a.result(room, room.Chat.String())
		})
	}
	return cmd
}

func (a *app) roomRenameCommand() *cobra.Command {
	cmd := command("rename CHAT TITLE", "Give a room another title", args("CHAT", "TITLE"), func(cmd *cobra.Command, args []string) error {
		title := strings.TrimSpace(args[1])
		if err := titled(title); err != nil {
			return err
		}
		return a.onChat(cmd.Context(), args[0], func(ctx context.Context, p local.Profile, id delivery.RoomID) error {
			if _, err := p.Rename(ctx, local.RenameRequest{Chat: id, Title: title}); err != nil {
				return err
			}
			return a.result(map[string]any{"chat": id, "title": title}, "")
		})
	})
	cmd.ValidArgsFunction = a.completeChat
	return cmd
}

// titled checks the title of a room.
func titled(title string) error {
	if title == "" || len(title) > content.MaxTitle || !utf8.ValidString(title) {
		return usage("a title has 1 to %d bytes of UTF-8", content.MaxTitle)
	}
	if !visible(title) {
		return usage("a title has no characters that are not to be seen: line breaks, controls, changes of direction")
	}
	return nil
}

// onChat opens the profile, finds a chat and runs f on it.
func (a *app) onChat(ctx context.Context, name string, f func(ctx context.Context, p local.Profile, id delivery.RoomID) error) error {
	return a.withLocal(ctx, func(ctx context.Context, p local.Profile) error {
		id, err := chat(ctx, p, name)
		if err != nil {
			return err
		}
		return f(ctx, p, id)
	})
}

// roomMember makes a command about people in a room.
func (a *app) roomMember(use, short string, run func(local.Profile, context.Context, local.MemberRequest) (local.None, error)) *cobra.Command {
	check := func(_ *cobra.Command, given []string) error {
		if len(given) < 2 {
			return args("CHAT", "WHO")(nil, given)
		}
		return nil
	}
	cmd := command(use, short, check, func(cmd *cobra.Command, args []string) error {
		people := make([]local.Who, len(args)-1)
		for i, text := range args[1:] {
			w, err := who(text)
			if err != nil {
				return err
			}
			people[i] = w
		}
		return a.onChat(cmd.Context(), args[0], func(ctx context.Context, p local.Profile, id delivery.RoomID) error {
			for i, w := range people {
				if _, err := run(p, ctx, local.MemberRequest{Chat: id, Who: w}); err != nil {
					return err
				}
				if err := a.result(map[string]any{"chat": id, "who": args[1+i]}, ""); err != nil {
					return err
				}
			}
			return nil
		})
	})
	cmd.ValidArgsFunction = a.completeChatThenPeople
	return cmd
}

// roomChange makes a command about this account's place in a room.
func (a *app) roomChange(use, short string, run func(local.Profile, context.Context, local.RoomRequest) (local.None, error)) *cobra.Command {
	cmd := command(use, short, args("CHAT"), func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			id, err := chat(ctx, p, args[0])
			if err != nil {
				return err
			}
			if _, err := run(p, ctx, local.RoomRequest{Chat: id}); err != nil {
				return err
			}
			return a.result(local.Room{Chat: id}, "")
		})
	})
	cmd.ValidArgsFunction = a.completeChat
	return cmd
}

func (a *app) membersCommand() *cobra.Command {
	cmd := command("members CHAT", "List who is in a chat", args("CHAT"), func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			id, err := chat(ctx, p, args[0])
			if err != nil {
				return err
			}
			members, err := p.Members(ctx, local.RoomRequest{Chat: id})
			if err != nil {
				return err
			}
			return a.showMembers(members)
		})
	})
	cmd.ValidArgsFunction = a.completeChat
	return cmd
}

func (a *app) showMembers(members []local.Member) error {
	var t table
	said := false
	for _, m := range members {
		if a.json {
			if err := a.emit(m); err != nil {
				return err
			}
			continue
		}
		if !said && m.Suite != "" {
			said = true
			a.say("Cipher suite: %s", m.Suite)
		}
		notes := plural(len(m.Devices), "device")
		if n := len(m.Idle); n > 0 {
			notes += fmt.Sprintf(" (%d idle for 90 days)", n)
		}
		if m.Verified {
			notes += ", verified"
		}
		if m.Self {
			notes += ", you"
		}
		if !a.outTTY {
			t.add(short(line(m.Name), titleColumns), at(m.Username), notes, m.Identity.String())
			continue
		}
		t.add(short(line(m.Name), titleColumns), at(m.Username), notes)
		t.below(m.Identity.String())
	}
	t.width = a.tableWidth()
	return t.write(a.out, func(column int, cell string) string {
		if column == 0 {
			return a.paint(a.outTTY, bold, cell)
		}
		return a.paint(a.outTTY, dim, cell)
	})
}
