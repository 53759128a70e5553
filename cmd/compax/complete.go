package main

import (
	"context"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/sdk/local"
)

// What the shell offers while a command is typed is read from this device: completing
// sends nothing. Shells keep of an offer only what goes on with the word as it stands.

// completeProfiles offers the names of profiles.
func (a *app) completeProfiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names, err := a.profiles()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// offered opens the chosen profile and gives what list finds in it.
func (a *app) offered(cmd *cobra.Command, list func(context.Context, local.Profile) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	var out []string
	err := a.withLocal(cmd.Context(), func(ctx context.Context, p local.Profile) (err error) {
		out, err = list(ctx, p)
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeChat offers the chats of the chosen profile for the first argument, and
// nothing for the others.
func (a *app) completeChat(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeChats(cmd, args, "")
}

// plainTitle is a title that no shell has to quote.
var plainTitle = regexp.MustCompile(`^[\p{L}\p{N}_.][\p{L}\p{N}_.-]*$`)

// completeChats offers every chat of the chosen profile by its id, and by the title or
// the other one's username where that is one plain word.
func (a *app) completeChats(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.offered(cmd, func(ctx context.Context, p local.Profile) ([]string, error) {
		chats, err := p.Chats(ctx, local.None{})
		titles := map[string]int{}
		for _, c := range chats {
			titles[strings.ToLower(c.Title)]++
		}
		var out []string
		for _, c := range chats {
			out = append(out, c.Chat.String()+"\t"+line(c.Title))
			if c.With != "" {
				out = append(out, "@"+c.With+"\t"+line(c.Title))
			}
			if plainTitle.MatchString(c.Title) && titles[strings.ToLower(c.Title)] == 1 {
				out = append(out, c.Title+"\tchat")
			}
		}
		return out, err
	})
}

// completePeople offers whom the chosen profile knows by a username.
func (a *app) completePeople(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.offered(cmd, func(ctx context.Context, p local.Profile) ([]string, error) {
		people, err := p.People(ctx, local.None{})
		out := make([]string, len(people))
		for i, c := range people {
			out[i] = at(c.Username) + "\t" + line(c.Name)
		}
		return out, err
	})
}

// completeChatThenPeople offers a chat, then people.
func (a *app) completeChatThenPeople(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeChats(cmd, args, word)
	}
	return a.completePeople(cmd, args, word)
}

// completeWho offers people for the first argument, and nothing for the others.
func (a *app) completeWho(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completePeople(cmd, args, word)
}

// completeUnsent offers the messages of the outbox.
func (a *app) completeUnsent(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.offered(cmd, func(ctx context.Context, p local.Profile) ([]string, error) {
		unsent, err := p.Outbox(ctx, local.None{})
		var out []string
		for _, u := range unsent {
			out = append(out, u.ID[:unsentID]+"\t"+short(line(u.Text), 40))
		}
		return out, err
	})
}

// completeFiles leaves an argument to the shell, which offers files.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}
