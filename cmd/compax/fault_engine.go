package main

import (
	"errors"

	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

// codePhraseNeeded is the code of an error that the phrase would mend.
const codePhraseNeeded = "phrase_needed"

// engineFaults is what each error of the engine means: the first that an error
// wraps counts.
var engineFaults = []struct {
	is   error
	code string
	exit int
	hint string
}{
	{client.ErrCopied, "copied", exitRefused, "use this device in one place; make the other one a device of its own: compax devices ticket here, compax account link there"},
	{sdk.ErrClosed, "closed", exitOffline, "the program that had the profile open ended: run it again"},
	{sdk.ErrRevoked, "revoked", exitRefused, "what it has can be read; a new device is made with the phrase: compax account restore"},
	{sdk.ErrNoRoom, "no_chat", exitRefused, "compax chats lists the chats of this profile"},
	{sdk.ErrNoMessage, "no_message", exitRefused, "compax history shows the numbers"},
	{sdk.ErrNotMessage, "not_message", exitRefused, "compax history shows the numbers of messages"},
	{sdk.ErrRequest, "request", exitRefused, "compax room accept, or decline, decides about it"},
	{sdk.ErrOut, "not_member", exitRefused, "somebody who is in it can add you again: compax room add"},
	{sdk.ErrAuthor, "not_author", exitRefused, ""},
	{sdk.ErrSuite, "suite", exitRefused, "they have to open an app of a newer version, or the room has to be of another suite: compax room new --suite"},
	{sdk.ErrNobody, "nobody", exitRefused, "check the name with them; usernames are written @name"},
	{sdk.ErrNoKey, codePhraseNeeded, exitUsage, "give the recovery phrase on standard input"},
	{sdk.ErrCode, "code", exitUsage, "copy the whole code; compax devices ticket shows one on a device of the account"},
	{sdk.ErrWaiting, "waiting", exitOffline, "approve it on a device of the account: compax devices approve OFFER; then run this again"},
	{sdk.ErrNoAccount, "no_account", exitUsage, "make it: compax account new, or bring one back: compax account restore"},
	{sdk.ErrAccount, "exists", exitUsage, "choose another --profile"},
	{sdk.ErrSeal, "seal", exitRefused, "put back the seal.key that belongs to this profile, or restore the account in another profile"},
	{sdk.ErrChanged, "changed", exitRefused, "compare safety numbers: compax verify"},
	{sdk.ErrStuck, "stuck", exitRefused, "the others have to make a change that can be read, or a new room"},
	{sdk.ErrYourself, "yourself", exitRefused, "name somebody else; who wants to go leaves: compax room leave"},
	{sdk.ErrDirect, "direct", exitRefused, "make a group: compax room new --title TITLE"},
	{sdk.ErrNoFile, "no_file", exitRefused, ""},
	{sdk.ErrNotWaiting, "not_waiting", exitUsage, "compax outbox lists them"},
	{sdk.ErrSending, "sending", exitRefused, "compax outbox resend brings it to its end"},
	{sdk.ErrNotListed, "not_listed", exitRefused, "compax room find shows what is in the list"},
	{sdk.ErrText, "text", exitUsage, "a longer text goes as a file: --file"},
}

func engineFault(err error) *local.Error {
	for _, f := range engineFaults {
		if errors.Is(err, f.is) {
			detail := tidy(err.Error())
			if f.is == sdk.ErrRevoked || f.is == sdk.ErrNotListed {
				detail = f.is.Error() // the service's words for it say the same
			}
			return &local.Error{Code: f.code, Exit: f.exit, Detail: detail, Hint: f.hint}
		}
	}
	return nil
}
