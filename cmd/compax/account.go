package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
	"github.com/askucher/compax-core/sdk/local"
)

func (a *app) accountCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "account", Short: "Make an account, or bring one back from its phrase", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.accountNewCommand(), a.accountRestoreCommand(), a.accountLinkCommand(), a.accountShowCommand(), a.accountListCommand(), a.accountArchiveCommand())
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
	flags.StringVar(&server, "server", "", "address of the service, https://…")
	flags.StringVar(&name, "name", "", "what others see")
	flags.StringVar(&username, "username", "", "a name to be found by, @name: 3 to 32 letters, digits and underscores")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		name = strings.TrimSpace(name)
		switch {
		case server == "":
			return usage("--server is missing")
		case name == "":
			return usage("--name is missing")
		case len(name) > identity.MaxDisplayName:
			return usage("--name has more than %d bytes", identity.MaxDisplayName)
		}
		if err := checkServer(server); err != nil {
			return err
		}
		if username != "" {
			if _, err := identity.NormalizeUsername(username); err != nil {
				return usage("--username: %s", tidy(err.Error()))
			}
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
// is taken away again, so that the name is free.
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
	if err != nil && made && !errors.Is(err, errShown) {
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
device of the account; a lost one is ended with compax devices revoke.`
	cmd.Flags().StringVar(&server, "server", "", "address of the service where the account was made")
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
			if a.json {
				return a.emit(self)
			}
			var t table
			t.add("name", line(self.Name))
			t.add("username", at(self.Username))
			t.add("identity", self.Identity.String())
			t.add("device", self.Device.String())
			t.add("server", self.Server)
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
		})
	})
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
		return nil
	})
}
