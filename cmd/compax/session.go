package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

// with opens the chosen profile, catches up with the service, runs f and closes
// the profile. Offline, and on a device that was revoked, f still runs on what is
// here, and the person is told.
func (a *app) with(ctx context.Context, f func(ctx context.Context, p local.Profile) error) error {
	return a.withLocal(ctx, func(ctx context.Context, p local.Profile) error {
		_, err := p.Sync(ctx, local.None{})
		a.wipe()
		if err != nil {
			e := explain(err)
			if e.Exit != exitOffline && e.Code != string(delivery.CodeRevoked) || ctx.Err() != nil {
				return err
			}
			defer a.say("compax: %s: this is what was here before", clean(e.Detail))
		}
		return f(ctx, p)
	})
}

// withLocal is with without catching up first.
func (a *app) withLocal(ctx context.Context, f func(ctx context.Context, p local.Profile) error) error {
	name, dir, err := a.chosen(false)
	if err != nil {
		return err
	}
	p, err := a.open(ctx, name, dir)
	if err != nil {
		return err
	}
	return errors.Join(f(ctx, p), p.Close())
}

// who reads @username or an identity.
func who(text string) (local.Who, error) {
	if name, at := strings.CutPrefix(text, "@"); at {
		name, err := identity.NormalizeUsername(name)
		if err != nil {
			return local.Who{}, usage("%q is no username: %s", text, tidy(err.Error()))
		}
		return local.Who{Username: name}, nil
	}
	key, err := identity.ParsePublicKey(text)
	if err != nil {
		return local.Who{}, hint(usage("%q names nobody", text), "write @username, or an identity: 64 hex digits")
	}
	return local.Who{Identity: &key}, nil
}

// chat reads a CHAT argument: the chat's id, the beginning of it, its title, or
// @username of a direct chat.
func chat(ctx context.Context, p local.Profile, text string) (delivery.RoomID, error) {
	if id, err := delivery.ParseRoomID(text); err == nil {
		return id, nil
	}
	chats, err := p.Chats(ctx, local.None{})
	if err != nil {
		return delivery.RoomID{}, err
	}
	var found []local.Chat
	for _, c := range chats {
		if names(c, text) {
			found = append(found, c)
		}
	}
	if going := slices.DeleteFunc(slices.Clone(found), over); len(going) > 0 {
		found = going // a chat that has moved on keeps its title
	}
	switch len(found) {
	case 1:
		return found[0].Chat, nil
	case 0:
		if strings.HasPrefix(text, "@") {
			return delivery.RoomID{}, hint(usage("there is no chat with %s yet", text), "begin one: compax room new --direct %s", text)
		}
		return delivery.RoomID{}, hint(usage("%q is no chat of this profile", text), "compax chats lists them")
	}
	ids := make([]string, len(found))
	for i, c := range found {
		ids[i] = c.Chat.String()
	}
	return delivery.RoomID{}, hint(usage("%q may be any of %d chats", text, len(found)), "%s", strings.Join(ids, ", "))
}

// over reports whether nothing can be said in a chat any more.
func over(c local.Chat) bool {
	switch sdk.Status(c.Status) {
	case sdk.StatusOut, sdk.StatusLeft, sdk.StatusSucceeded:
		return true
	}
	return false
}

// minPrefix is how much of a chat's id is enough to name it, in characters. The
// first eight are the rules' version and the home, which chats share.
const minPrefix = 10

// names reports whether a text names a chat. With @ it is a username and nothing else:
// anybody can call a group, or themselves, "@bob".
func names(c local.Chat, text string) bool {
	if with, at := strings.CutPrefix(text, "@"); at {
		return c.With != "" && strings.EqualFold(with, c.With)
	}
	return c.Title != "" && strings.EqualFold(c.Title, text) ||
		len(text) >= minPrefix && strings.HasPrefix(c.Chat.String(), strings.ToLower(text))
}

// number reads a SEQ argument.
func number(text string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "#"), 10, 64)
	if err != nil || n == 0 {
		return 0, hint(usage("%q is no message's number", text), "compax history shows them")
	}
	return n, nil
}

// words reads a TEXT argument: - is standard input, without its last line break.
func (a *app) words(text string) (string, error) {
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(a.in, content.MaxText+2))
		if err != nil {
			return "", err
		}
		text = strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	}
	switch {
	case !utf8.ValidString(text):
		return "", hint(usage("the text is no UTF-8"), "send it as a file: --file")
	case len(text) > content.MaxText:
		return "", hint(usage("the text has more than %d bytes", content.MaxText), "send it as a file: --file")
	case strings.TrimSpace(text) == "":
		return "", usage("there is nothing to say")
	}
	return text, nil
}

// maxPhrase bounds what is read as a phrase, in bytes.
const maxPhrase = 4096

// askPhrase reads a recovery phrase: unseen from a terminal, else all of
// standard input.
func (a *app) askPhrase() ([]byte, error) {
	if a.inTTY {
		b, err := a.readHidden("Recovery phrase (24 words, not shown): ")
		if err != nil {
			return nil, err
		}
		return b, nil
	}
	return io.ReadAll(io.LimitReader(a.in, maxPhrase+1))
}
