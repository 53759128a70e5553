package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/sdk/local"
)

func (a *app) typingCommand() *cobra.Command {
	req := local.TypingRequest{}
	cmd := command("typing CHAT", "Show the others in a chat that you are typing", args("CHAT"), nil)
	cmd.Long = `Shows the others in a chat for six seconds that you are typing, or with --end that you
are no more. A message that is sent ends it by itself. Programs that ask people for
text call it while they type. Nothing is kept of it, nobody in a chat of more than 200
people is told, and "compax settings typing off" switches it off.`
	cmd.Flags().BoolVar(&req.Ended, "end", false, "typing no more")
	cmd.ValidArgsFunction = a.completeChat
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withLocal(cmd.Context(), func(ctx context.Context, p local.Profile) (err error) {
			if req.Chat, err = chat(ctx, p, args[0]); err != nil {
				return err
			}
			got, err := p.Typing(ctx, req)
			if err != nil {
				return err
			}
			if !got.Told && !a.json {
				a.say("Nobody is told: it is switched off (compax settings), or nobody else or too many are in the chat.")
			}
			return a.result(map[string]any{"chat": req.Chat, "typing": !req.Ended, "told": got.Told}, "")
		})
	}
	return cmd
}

// settings are the names that compax settings takes.
var settings = []string{"presence", "typing"}

func (a *app) settingsCommand() *cobra.Command {
	cmd := command("settings [NAME] [on|off]", "Show or change what a profile tells of you", args("[NAME]", "[on|off]"), nil)
	cmd.Long = `Shows what this profile tells others beside what you say, or switches it on or off:

typing    that you are typing, in chats of at most 200 people; on at first
presence  that you are there, in chats of at most 20 people; off at first

Both are sealed like messages and kept nowhere. They hold for this device.`
	cmd.Example = example(`compax settings -p ada`, `compax settings -p ada typing off`)
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return settings, cobra.ShellCompDirectiveNoFileComp
		case 1:
			return []string{"on", "off"}, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var req local.SettingsRequest
		if len(args) == 1 {
			return hint(usage("on or off is missing"), "compax settings alone shows what holds")
		}
		if len(args) == 2 {
			on := args[1] == "on"
			switch {
			case !on && args[1] != "off":
				return usage("%q is neither on nor off", args[1])
			case !slices.Contains(settings, args[0]):
				return hint(usage("%q is no setting", args[0]), "typing or presence")
			case args[0] == "typing":
				req.Typing = &on
			default:
				req.Presence = &on
			}
		}
		return a.withLocal(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			s, err := p.Settings(ctx, req)
			if err != nil {
				return err
			}
			if a.json {
				return a.emit(s)
			}
			var t table
			t.add("typing", onOff(s.Typing))
			t.add("presence", onOff(s.Presence))
			return t.write(a.out, func(_ int, cell string) string { return cell })
		})
	}
	return cmd
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
