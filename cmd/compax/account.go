package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

func (a *app) accountCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "account", Short: "Make an account, or bring one back from its phrase", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.accountNewCommand(), a.accountRestoreCommand(), a.accountLinkCommand(), a.accountShowCommand(), a.accountEditCommand(), a.accountListCommand(), a.accountArchiveCommand())
	return cmd
}

func (a *app) accountNewCommand() *cobra.Command {
	var server, name, username string
	cmd := command("new --server URL --name NAME", "Make an account and print its recovery phrase, once", args(), nil)
	cmd.Long = `Makes an account and its first device, and prints the recovery phrase: 24 words.
The phrase is the account. It is shown this once and kept nowhere; with it the
account comes back on any machine, without it nobody can bring it back.`
	cmd.Example = example(`compax account new -p ada --server http://127.0.0.1:8080 --name Ada`)
	flags := cmd.Flags()
	flags.StringVar(&server, "server", "", "address of the service, `URL`: https://…")
	flags.StringVar(&name, "name", "", "the `NAME` that others see")
	flags.StringVar(&username, "username", "", usernameUsage)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		name = strings.TrimSpace(name)
		switch {
		case server == "":
			return usage("--server is missing")
		case name == "":
			return usage("--name is missing")
		}
		if err := checkServer(server); err != nil {
			return err
		}
		if err := checkProfile(local.EditAccountRequest{Name: &name, Username: &username}); err != nil {
			return err
		}
		return a.inNewProfile(func(profile, dir string) error {
			self, words, err := a.engines.create(cmd.Context(), a, profile, dir, newAccount{server, name, username})
			if err != nil {
				return err
			}
			defer words.Wipe()
			return a.showNewAccount(self, words)
		})
	}
	return cmd
}

func checkServer(server string) error {
	if !strings.HasPrefix(server, "https://") && !strings.HasPrefix(server, "http://") {
		return hint(usage("--server: %q is no address", server), "it begins with https:// or http://")
	}
	return nil
}

// inNewProfile runs f on the folder of a new profile. What f leaves when it fails
// is taken away again, so that the name is free, unless it is of use: an account that
// exists, or a device that the service knows and another try completes.
func (a *app) inNewProfile(f func(profile, dir string) error) error {
	profile, dir, err := a.chosen(true)
	if err != nil {
		return err
	}
	made, err := makeProfileDir(dir)
	if err != nil {
		return err
	}
	err = f(profile, dir)
	if err != nil && made && !errors.Is(err, errShown) && !errors.Is(err, sdk.ErrUnfinished) {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// errShown: the account exists, and showing it failed.
var errShown = errors.New("the account was made")

// showNewAccount prints the phrase. On a terminal it is twelve lines of two
// numbered words to copy by hand, elsewhere one line.
func (a *app) showNewAccount(self local.Self, words phrase.Phrase) error {
	text := words.Words()
	shown := func(err error) error {
		if err != nil {
			return hint(errors.Join(errShown, err), "its phrase could not be shown: make another account while this one is empty")
		}
		return nil
	}
	if a.json {
		return shown(a.emit(struct {
			local.Self
			Phrase string `json:"phrase"`
		}{self, text}))
	}
	a.say("Account %s, profile %s, at %s.", a.paint(a.errTTY, bold, line(self.Name)), self.Profile, self.Server)
	a.say("These 24 words are the account. Write them down now: they are not shown again.\n")
	defer a.say("\nNext: compax room new --profile %s --direct @name", self.Profile)
	if !a.outTTY {
		_, err := fmt.Fprintln(a.out, text)
		return shown(err)
	}
	var t table
	list := strings.Fields(text)
	half := len(list) / 2
	for i := range half {
		t.add(fmt.Sprintf("  %2d", i+1), list[i], fmt.Sprintf("  %2d", half+i+1), list[half+i])
	}
	err := t.write(a.out, func(column int, cell string) string {
		if column%2 == 1 {
			return a.paint(true, bold, cell)
		}
		return a.paint(true, dim, cell)
	})
	return shown(err)
}

func (a *app) accountRestoreCommand() *cobra.Command {
	var server string
	cmd := command("restore --server URL", "Bring an account back from its phrase, as a new device", args(), nil)
	cmd.Long = `Reads the 24 words from standard input (unseen, on a terminal) and brings the
account back on this machine: name, contacts and rooms. It becomes a further
device of the account; a lost one is ended with compax devices revoke. Interrupted,
it goes on with the same device when it is run again with the same profile.`
	cmd.Flags().StringVar(&server, "server", "", "address of the service where the account was made, `URL`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if server == "" {
			return usage("--server is missing")
		}
		if err := checkServer(server); err != nil {
			return err
		}
		text, err := a.askPhrase()
		defer clear(text)
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(text)) == 0 {
			return usage("the recovery phrase is read from standard input, and nothing was there")
		}
		words, err := phrase.Parse(string(text))
		if err != nil {
			return err
		}
		defer words.Wipe()
		return a.inNewProfile(func(profile, dir string) error {
			self, err := a.engines.restore(cmd.Context(), a, profile, dir, server, words)
			if err != nil {
				return err
			}
			if !a.json {
				a.say("Welcome back, %s. Profile %s is a new device of this account.\nNext: compax chats --profile %[2]s", line(self.Name), self.Profile)
				return nil
			}
			return a.emit(self)
		})
	}
	return cmd
}

func (a *app) accountShowCommand() *cobra.Command {
	return command("show", "Show whose profile it is", args(), func(cmd *cobra.Command, _ []string) error {
		return a.withLocal(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			self, err := p.Self(ctx, local.None{})
			if err != nil {
				return err
			}
			return a.showSelf(self)
		})
	})
}

func (a *app) showSelf(self local.Self) error {
	if a.json {
		return a.emit(self)
	}
	var t table
	for _, row := range [][2]string{
		{"profile", self.Profile}, {"name", line(self.Name)}, {"about", line(self.About)}, {"username", at(self.Username)},
		{"identity", self.Identity.String()}, {"device", self.Device.String()}, {"server", self.Server},
	} {
		if row[1] != "" {
			t.add(row[0], row[1])
		}
	}
	if self.Waiting > 0 {
		t.add("outbox", plural(self.Waiting, "message")+" not sent yet")
	}
	if self.Failed > 0 {
		t.add("failed", plural(self.Failed, "message")+" could not be sent: compax outbox")
	}
	return t.write(a.out, func(column int, cell string) string {
		if column == 0 {
			return a.paint(a.outTTY, dim, cell)
		}
		return cell
	})
}

func (a *app) accountEditCommand() *cobra.Command {
	var name, about, username string
	cmd := command("edit [--name NAME] [--about TEXT] [--username NAME]", "Change what others call you", args(), nil)
	cmd.Long = `Changes what everybody sees of the account, and says so in its chats: the name, a
line about it, the username to be found by. What is not given stays; an empty
--about or --username takes it back. A device that does not hold the account's key
asks for the recovery phrase, on standard input.`
	cmd.Example = example(`compax account edit -p ada --name "Ada L."`)
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "", "the `NAME` that others see")
	flags.StringVar(&about, "about", "", "a line about you, `TEXT`")
	flags.StringVar(&username, "username", "", usernameUsage)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		req := local.EditAccountRequest{}
		for _, f := range []struct {
			flag  string
			value *string
			field **string
		}{{"name", &name, &req.Name}, {"about", &about, &req.About}, {"username", &username, &req.Username}} {
			if cmd.Flags().Changed(f.flag) {
				*f.value = strings.TrimSpace(*f.value)
				*f.field = f.value
			}
		}
		if req == (local.EditAccountRequest{}) {
			return hint(usage("say what to change: --name, --about or --username"), "compax account show shows what there is")
		}
		if err := checkProfile(req); err != nil {
			return err
		}
		return a.withLocal(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			return a.edit(ctx, p, req)
		})
	}
	return cmd
}

const usernameUsage = "a `NAME` to be found by, @name: 3 to 32 letters, digits and underscores"

// checkProfile checks what a person is to be called, and writes the username as it is
// kept.
func checkProfile(r local.EditAccountRequest) error {
	if r.Name != nil {
		switch n := *r.Name; {
		case n == "":
			return usage("--name is empty")
		case len(n) > identity.MaxDisplayName:
			return usage("--name has more than %d bytes", identity.MaxDisplayName)
		case !visible(n):
			return usage("--name has characters that are not to be seen: line breaks, controls, changes of direction")
		}
	}
	if r.About != nil {
		switch t := *r.About; {
		case len(t) > identity.MaxAbout:
			return usage("--about has more than %d bytes", identity.MaxAbout)
		case !utf8.ValidString(t) || clean(t) != t:
			return usage("--about has characters that are not to be seen: controls, changes of direction")
		}
	}
	if r.Username != nil && *r.Username != "" {
		name, err := identity.NormalizeUsername(*r.Username)
		if err != nil {
			return usage("--username: %s", tidy(err.Error()))
		}
		*r.Username = name
	}
	return nil
}

// edit asks for the phrase only when it is needed.
func (a *app) edit(ctx context.Context, p local.Profile, req local.EditAccountRequest) error {
	var self local.Self
	err := a.withPhrase(func(text string) (err error) {
		req.Phrase = text
		self, err = p.EditAccount(ctx, req)
		return err
	})
	if err != nil {
		return err
	}
	return a.showSelf(self)
}

// withPhrase does what may need the recovery phrase: without it, and when that is refused
// for it, once more with the one that is typed. Who types none is told of the refusal.
func (a *app) withPhrase(do func(text string) error) error {
	err := do("")
	if err == nil || explain(err).Code != codePhraseNeeded {
		return err
	}
	text, ask := a.askPhrase()
	defer clear(text)
	if ask != nil {
		return ask
	}
	if strings.TrimSpace(string(text)) == "" {
		return err
	}
	return do(string(text))
}

func (a *app) accountListCommand() *cobra.Command {
	return command("list", "List the profiles on this machine", args(), func(*cobra.Command, []string) error {
		names, err := a.profiles()
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := a.result(map[string]string{"profile": name}, name); err != nil {
				return err
			}
		}
		if len(names) == 0 && !a.json {
			a.say("No profiles yet. Make one: compax account new --server URL --name NAME")
		}
		return nil
	})
}
