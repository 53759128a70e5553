package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

// errTimeUp ends a listener that waited in vain.
var errTimeUp = errors.New("the time is up")

func (a *app) listenCommand() *cobra.Command {
	var in, since string
	var count int
	var timeout time.Duration
	req := local.ListenRequest{}
	cmd := command("listen", "Print what arrives, as it arrives", args(), nil)
	cmd.Long = `Prints what others say, as it arrives, from where this profile has stopped
listening: a message is printed once, also when a listener was killed. One that was
killed in the very moment of printing into a pipe or on a terminal may have printed
its last row or not: that row comes once more, and says so ("again": true; its "id"
is the same). In a file it is looked up, and never comes twice. What this device
itself said is left out. Each chat has a place of its own; --since, which begins
elsewhere, leaves it where it is.

It ends after --count messages of people (texts, files, edits, deletions,
reactions), or when --timeout has passed: with exit code 0, or 3 when fewer than
--count came. Titles, joins and names, and who types or comes, are printed with
--events and not counted.`
	cmd.Example = example(`compax listen -p ada`, `compax listen -p ada --chat Tea --count 1 --timeout 60s --json`)
	flags := cmd.Flags()
	flags.StringVar(&in, "chat", "", "only this `CHAT`")
	flags.StringVar(&since, "since", "", "start after this `SEQ` instead (with --chat)")
	flags.IntVarP(&count, "count", "n", 0, "end after `N` messages of people")
	flags.DurationVar(&timeout, "timeout", 0, "end after this `TIME`, such as 90s or 5m")
	flags.BoolVar(&req.Events, "events", false, "titles, joins, names and who types as well")
	must(cmd.RegisterFlagCompletionFunc("chat", a.completeChats))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if count < 0 || timeout < 0 {
			return usage("--count and --timeout are not negative")
		}
		if since != "" {
			n, err := sinceNumber(since)
			if err != nil {
				return err
			}
			if in == "" {
				return usage("--since counts in one chat: name it with --chat")
			}
			req.Since = &n
		}
		ctx := cmd.Context()
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimeUp)
			defer cancel()
		}
		a.behind.hush() // the rows come as they are read
		listens := false
		err := a.withLocal(ctx, func(ctx context.Context, p local.Profile) error {
			if in != "" {
				id, err := chat(ctx, p, in)
				if err != nil {
					return err
				}
				req.Chat = &id
			}
			n, err := a.notebook(req)
			if err != nil {
				return err
			}
			listens = true
			return errors.Join(a.listen(ctx, p, req, count, n), n.close())
		})
		if !listens && errors.Is(context.Cause(ctx), errTimeUp) { // opening the profile took all of it
			return timeUp(count, 0)
		}
		return err
	}
	return cmd
}

// sinceNumber is a seq, or 0 for the beginning.
func sinceNumber(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, usage("--since: %q is no message's number", text)
	}
	return n, nil
}

// listen prints rows until count messages of people came, or the context ends.
func (a *app) listen(ctx context.Context, p local.Profile, req local.ListenRequest, count int, n *notebook) error {
	v := a.view(ctx, p, req.Chat == nil)
	heard := 0
	_, err := p.Listen(ctx, req, func(r local.Row) error {
		if shown, err := v.once(r, n); err != nil || !shown {
			return err
		}
		if sdk.LineKind(r.Kind).Said() {
			heard++
		}
		if count > 0 && heard >= count {
			return local.ErrStop
		}
		return nil
	})
	v.seen(context.WithoutCancel(ctx))
	switch {
	case err == nil || errors.Is(err, local.ErrStop):
		return nil
	case errors.Is(context.Cause(ctx), errTimeUp):
		return timeUp(count, heard)
	case ctx.Err() != nil:
		return nil // listened as long as it was wanted
	}
	return err
}

// timeUp is how a listener ends whose time has passed: well, unless it was to wait
// for more messages than came.
func timeUp(count, heard int) error {
	if heard >= count {
		return nil
	}
	return &local.Error{Code: "timeout", Exit: exitOffline, Detail: fmt.Sprintf("%d of %d messages came in time", heard, count)}
}

// once prints a row of a listener that begins at the profile's own place, unless
// an earlier one has printed it; n is nil for one that begins elsewhere. What
// somebody does now is printed whenever it happens.
func (v *view) once(r local.Row, n *notebook) (shown bool, err error) {
	if n == nil || r.Passing() {
		return true, v.row(r)
	}
	what, err := n.judge(r)
	if err != nil || what == rowPassed {
		return false, err
	}
	r.Again = what == rowAgain
	line := v.line(r)
	if what == rowTorn {
		line = append([]byte("\n"), line...)
	}
	return true, n.print(r, line, func(line []byte) error { return v.write(r, line) })
}

func (a *app) historyCommand() *cobra.Command {
	var since string
	req := local.HistoryRequest{}
	cmd := command("history CHAT", "Print what was said in a chat", args("CHAT"), nil)
	cmd.Long = `Prints what stands in a chat now: edits applied, deletions gone, reactions with
their message. The number in front of a message is what reply, edit, delete, react
and get take.`
	flags := cmd.Flags()
	flags.StringVar(&since, "since", "", "start after this `SEQ`")
	flags.IntVarP(&req.Limit, "limit", "n", 0, "only the last `N`")
	flags.BoolVar(&req.Events, "events", false, "titles, joins and names as well")
	cmd.ValidArgsFunction = a.completeChat
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if req.Limit < 0 {
			return usage("--limit is not negative")
		}
		if since != "" {
			var err error
			if req.Since, err = sinceNumber(since); err != nil {
				return err
			}
		}
		return a.with(cmd.Context(), func(ctx context.Context, p local.Profile) (err error) {
			if req.Chat, err = chat(ctx, p, args[0]); err != nil {
				return err
			}
			v := a.view(ctx, p, false)
			rows := 0
			if _, err = p.History(ctx, req, func(r local.Row) error { rows++; return v.row(r) }); err != nil {
				return err
			}
			v.seen(ctx)
			if told := a.tellPast(ctx, p, req.Chat); rows == 0 && !told && !a.json {
				a.say("%s", nothingSaid(req))
			}
			a.tellFailed(ctx, p)
			return nil
		})
	}
	return cmd
}

// nothingSaid is what an empty history says.
func nothingSaid(r local.HistoryRequest) string {
	if r.Since > 0 {
		return fmt.Sprintf("Nothing was said after #%d.", r.Since)
	}
	return "Nothing was said yet. Begin: compax send CHAT TEXT"
}

func (a *app) searchCommand() *cobra.Command {
	var in string
	req := local.SearchRequest{}
	cmd := command("search TEXT", "Find messages by part of their text", args("TEXT"), nil)
	cmd.Long = `Finds messages by part of their text, newest first. It searches on this device:
the service cannot.`
	cmd.Flags().StringVar(&in, "chat", "", "only this `CHAT`")
	cmd.Flags().IntVarP(&req.Limit, "limit", "n", 100, "at most `N`")
	must(cmd.RegisterFlagCompletionFunc("chat", a.completeChats))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if req.Limit < 1 {
			return usage("--limit is at least 1")
		}
		req.Text = args[0]
		switch {
		case strings.TrimSpace(req.Text) == "":
			return hint(usage("there is nothing to look for"), "compax history shows all of a chat")
		case !utf8.ValidString(req.Text):
			return usage("what is looked for is no UTF-8")
		}
		return a.with(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			if in != "" {
				id, err := chat(ctx, p, in)
				if err != nil {
					return err
				}
				req.Chat = &id
			}
			found := 0
			v := a.view(ctx, p, true)
			_, err := p.Search(ctx, req, func(r local.Row) error { found++; return v.row(r) })
			if err == nil && found == 0 {
				a.say("Nothing found.")
			}
			return err
		})
	}
	return cmd
}

// view shows rows.
type view struct {
	a      *app
	p      local.Profile
	titled bool // rows of many chats: say which
	title  func(delivery.RoomID) string
	last   map[delivery.RoomID]uint64 // the last number that was shown
}

// view shows rows of one chat, or of many: then each says of which.
func (a *app) view(ctx context.Context, p local.Profile, titled bool) *view {
	known := map[delivery.RoomID]string{}
	return &view{a: a, p: p, titled: titled, last: map[delivery.RoomID]uint64{}, title: func(id delivery.RoomID) string {
		if title, ok := known[id]; ok {
			return title
		}
		if chats, err := p.Chats(ctx, local.None{}); err == nil {
			for _, c := range chats {
				known[c.Chat] = line(c.Title)
			}
		}
		if known[id] == "" {
			known[id] = id.String()
		}
		return known[id]
	}}
}

// seenTime bounds how long marking as read may keep a command from ending.
const seenTime = 3 * time.Second

// seen marks what was shown as read, when a person was there to read it. Offline
// it stays unread: nothing is lost by that.
func (v *view) seen(ctx context.Context) {
	if v.a.json || !v.a.outTTY {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, seenTime)
	defer cancel()
	for id, seq := range v.last {
		if _, err := v.p.Seen(ctx, local.SeenRequest{Chat: id, Seq: seq}); err != nil && explain(err).Exit != exitOffline {
			v.a.say("compax: marking as read: %s", clean(explain(err).Detail))
		}
	}
}
