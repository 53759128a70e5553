package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk/local"
)

func newKey() (k local.Key) {
	_, _ = rand.Read(k[:]) // never fails
	return k
}

func (a *app) sendCommand() *cobra.Command {
	var file, reply string
	cmd := command("send CHAT [TEXT|-]", "Say something, or send a file", args("CHAT", "[TEXT]"), nil)
	cmd.Long = `Says TEXT in a chat; - reads it from standard input. With --file it is the file's
caption. The number of the message is printed when the service has accepted it.

Offline, the message is kept and goes out with the next command that reaches the
service; the exit code is then 3, and the error says that it is kept ("kept": true
with --json). A file is not: send it again, and its upload goes on where it stopped.`
	cmd.Example = example(`compax send -p ada Tea "Tea at five?"`, `compax send -p ada Tea --file photo.jpg`, `date | compax send -p ada Tea -`)
	cmd.ValidArgsFunction = a.completeChat
	cmd.Flags().StringVarP(&file, "file", "f", "", "a `FILE` to send")
	cmd.Flags().StringVarP(&reply, "reply", "r", "", "`SEQ` of the message that this answers")
	must(cmd.MarkFlagFilename("file"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		req := local.SendRequest{Key: newKey()}
		var err error
		if reply != "" {
			if req.Reply, err = number(reply); err != nil {
				return err
			}
		}
		if file != "" {
			if req.File, err = sendable(file); err != nil {
				return err
			}
		}
		switch {
		case len(args) == 2:
			if req.Text, err = a.words(args[1]); err != nil {
				return err
			}
		case file == "":
			return usage("TEXT is missing (or - for standard input, or --file)")
		}
		return a.withLocal(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			if req.Chat, err = chat(ctx, p, args[0]); err != nil {
				return err
			}
			bar := a.bar(filepath.Base(file))
			sent, err := p.Send(ctx, req, bar.show)
			bar.end()
			if err != nil {
				return err
			}
			return a.sent(sent)
		})
	}
	return cmd
}

// sendable is the absolute path of a file that can be read.
func sendable(path string) (string, error) {
	info, err := os.Stat(path) // first: opening a pipe waits for who writes into it
	if err != nil {
		return "", err
	}
	switch {
	case info.IsDir():
		return "", hint(usage("%s is a folder", path), "send its files one by one, or an archive of it")
	case !info.Mode().IsRegular():
		return "", usage("%s is no file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	if !utf8.ValidString(filepath.Base(path)) {
		return "", hint(usage("the file's name is no UTF-8"), "rename it, or send a copy")
	}
	return filepath.Abs(path)
}

func (a *app) sent(s local.Sent) error { return a.result(s, fmt.Sprintf("#%d", s.Seq)) }

// onMessage makes a command about one message: CHAT and SEQ come first.
func (a *app) onMessage(use, short string, names []string, run func(ctx context.Context, p local.Profile, chat delivery.RoomID, seq uint64, rest []string) error) *cobra.Command {
	cmd := command(use, short, args(append([]string{"CHAT", "SEQ"}, names...)...), func(cmd *cobra.Command, args []string) error {
		seq, err := number(args[1])
		if err != nil {
			return err
		}
		return a.withLocal(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			id, err := chat(ctx, p, args[0])
			if err != nil {
				return err
			}
			return run(ctx, p, id, seq, args[2:])
		})
	})
	cmd.ValidArgsFunction = a.completeChat
	return cmd
}

func (a *app) editCommand() *cobra.Command {
	return a.onMessage("edit CHAT SEQ TEXT|-", "Change what you said", []string{"TEXT"},
		func(ctx context.Context, p local.Profile, chat delivery.RoomID, seq uint64, rest []string) error {
			text, err := a.words(rest[0])
			if err != nil {
				return err
			}
			sent, err := p.Edit(ctx, local.EditRequest{Key: newKey(), Chat: chat, Seq: seq, Text: text})
			if err != nil {
				return err
			}
			return a.sent(sent)
		})
}

func (a *app) deleteCommand() *cobra.Command {
	return a.onMessage("delete CHAT SEQ", "Take back what you said", nil,
		func(ctx context.Context, p local.Profile, chat delivery.RoomID, seq uint64, _ []string) error {
			sent, err := p.Delete(ctx, local.DeleteRequest{Key: newKey(), Chat: chat, Seq: seq})
			if err != nil {
				return err
			}
			return a.sent(sent)
		})
}

func (a *app) reactCommand() *cobra.Command {
	var remove bool
	cmd := a.onMessage("react CHAT SEQ EMOJI", "React to a message", []string{"EMOJI"},
		func(ctx context.Context, p local.Profile, chat delivery.RoomID, seq uint64, rest []string) error {
			emoji := strings.TrimSpace(rest[0])
			if emoji == "" || !visible(emoji) || len(emoji) > content.MaxReaction {
				return usage("a reaction is an emoji, or at most %d bytes of text", content.MaxReaction)
			}
			sent, err := p.React(ctx, local.ReactRequest{Key: newKey(), Chat: chat, Seq: seq, Emoji: emoji, Remove: remove})
			if err != nil {
				return err
			}
			return a.sent(sent)
		})
	cmd.Flags().BoolVar(&remove, "remove", false, "take the reaction back")
	return cmd
}

func (a *app) getCommand() *cobra.Command {
	var output string
	var force bool
	cmd := a.onMessage("get CHAT SEQ -o FILE", "Save the file of a message", nil,
		func(ctx context.Context, p local.Profile, chat delivery.RoomID, seq uint64, _ []string) error {
			if output == "" {
				return usage("say where to save it: -o FILE")
			}
			path, err := filepath.Abs(output)
			if err != nil {
				return err
			}
			if err := free(path, force); err != nil {
				return err
			}
			bar := a.bar(filepath.Base(path))
			file, err := p.Get(ctx, local.GetRequest{Chat: chat, Seq: seq, Path: path}, bar.show)
			bar.end()
			if err != nil {
				return err
			}
			file.Path = path
			return a.result(file, output)
		})
	cmd.Long = `Saves the file that a message carries. An interrupted one goes on where it
stopped. A file that is there is not overwritten, except with --force.`
	cmd.Flags().StringVarP(&output, "output", "o", "", "`FILE` to save it as")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite")
	must(cmd.MarkFlagFilename("output"))
	return cmd
}

// free refuses a path at which something is.
func free(path string, force bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		folder := filepath.Dir(path)
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return usage("there is no folder %s to save it in", folder)
		}
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return usage("%s is a folder: name a file in it", path)
	case !force:
		return hint(usage("%s is there already", path), "choose another name, or overwrite it with --force")
	}
	return nil
}
