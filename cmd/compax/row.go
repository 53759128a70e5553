package main

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

const (
	timeColumns = 5
	nameColumns = 14
)

// row prints a row. What was announced and changed nothing is for scripts alone.
func (v *view) row(r local.Row) error {
	if sdk.LineKind(r.Kind) == sdk.LineControl && r.Text == "" && !v.a.json {
		return nil
	}
	return v.write(r, v.line(r))
}

// write prints the line of a row, with one write.
func (v *view) write(r local.Row, line []byte) error {
	_, err := v.a.out.Write(line)
	return err
}

// line is what is printed of a row: its number, time, who, what. A text of several
// lines goes on below its beginning. With --json it is one object.
func (v *view) line(r local.Row) []byte {
	a := v.a
	if a.json {
		return encode(r)
	}
	if sdk.LineKind(r.Kind).Conversation() {
		v.last[r.Chat] = max(v.last[r.Chat], r.Seq)
	}
	name := short(speaker(r), nameColumns)
	number := fmt.Sprintf("#%d", r.Seq)
	if r.Passing() {
		number = ""
	}
	head := fmt.Sprintf("%6s  %-*s  ", number, timeColumns, a.when(r.Time))
	indent := columns(head) + nameColumns + 2
	painted := a.paint(a.outTTY, dim, head) + a.paint(a.outTTY, "1;"+personColour(r.From.String()), name) +
		strings.Repeat(" ", max(0, nameColumns-columns(name))+2)
	if v.titled {
		title := short(v.title(r.Chat), nameColumns)
		painted += a.paint(a.outTTY, dim, title) + strings.Repeat(" ", max(0, nameColumns-columns(title))+2)
		indent += nameColumns + 2
	}
	body := strings.ReplaceAll(a.body(r), "\n", "\n"+strings.Repeat(" ", indent))
	return []byte(painted + body + "\n")
}

// speaker is who a row is from, as this profile calls them.
func speaker(r local.Row) string {
	if name := line(r.Name); name != "" {
		return name
	}
	if id := r.From.String(); strings.Trim(id, "0") != "" {
		return id[:8]
	}
	return "—"
}

// body is what a row says.
func (a *app) body(r local.Row) string {
	soft := func(format string, args ...any) string {
		return a.paint(a.outTTY, dim, fmt.Sprintf(format, args...))
	}
	text := clean(r.Text)
	about := ""
	if r.Target != 0 {
		about = fmt.Sprintf(" #%d", r.Target)
	}
	switch r.Kind {
	case local.RowTyping:
		return soft("types …")
	case local.RowTypingEnded:
		return soft("types no more")
	case local.RowOnline:
		return soft("is there")
	case local.RowOffline:
		return soft("has left")
	}
	switch sdk.LineKind(r.Kind) {
	case sdk.LineText, sdk.LineFile, sdk.LinePoll:
		return a.message(r, text)
	case sdk.LineEdit:
		return soft("changed%s: ", about) + text
	case sdk.LineDelete:
		return soft("took back%s", about)
	case sdk.LineReaction:
		return text + soft(" to%s", about)
	case sdk.LineUnreact:
		return soft("took back a reaction to%s", about)
	case sdk.LineTitle:
		return soft("called the chat %q", line(r.Text))
	case sdk.LinePicture:
		return soft("changed the picture")
	case sdk.LineProfile:
		return soft("is called %q", line(r.Text))
	case sdk.LineAsk:
		return strings.TrimSuffix(soft("asks to be added: ")+line(r.Text), " ")
	case sdk.LineJoin:
		return soft("came in")
	case sdk.LineLeave:
		return soft("went out")
	case sdk.LineGap:
		return a.paint(a.outTTY, red, "[missing: "+line(r.Cause)+"]")
	case sdk.LineUnread:
		return a.paint(a.outTTY, red, "[cannot be read: "+line(r.Cause)+"]")
	case sdk.LineOther:
		return soft("[%s: this version does not show it]", line(r.Text))
	}
	if text == "" {
		return soft("[%s]", r.Kind)
	}
	return soft("[%s] ", r.Kind) + text
}

// message is what somebody said, with what belongs to it.
func (a *app) message(r local.Row, text string) string {
	soft := func(text string) string { return a.paint(a.outTTY, dim, text) }
	var parts []string
	if r.ReplyTo != 0 {
		parts = append(parts, soft(fmt.Sprintf("↪ #%d", r.ReplyTo)))
	} else if r.ReplyToID != "" {
		parts = append(parts, soft("↪ an earlier message"))
	}
	if r.File != nil {
		parts = append(parts, fmt.Sprintf("[%s, %s]", line(r.File.Name), humanize.IBytes(r.File.Size)))
	}
	if text != "" {
		parts = append(parts, text)
	}
	if r.Again {
		parts = append(parts, soft("(perhaps shown before)"))
	}
	if r.Edited {
		parts = append(parts, soft("(edited)"))
	}
	for _, reaction := range r.Reactions {
		mark := line(reaction.Emoji)
		if n := len(reaction.From); n > 1 {
			mark += fmt.Sprintf(" %d", n)
		}
		parts = append(parts, soft("· ")+mark)
	}
	return strings.Join(parts, " ")
}
