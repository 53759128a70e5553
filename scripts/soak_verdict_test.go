package scripts

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// verdict holds what everybody has at the end against what was acknowledged.
func (w *soaking) verdict() {
	w.t.Logf("%d kills; acknowledged: %v", w.kills, w.done)
	if w.done["text"] == 0 || w.kills == 0 {
		w.t.Fatal("nothing happened")
	}
	for _, r := range w.readers {
		rows := w.history(r.name)
		w.noneTwice(r, rows)
		w.nothingLost(r, rows)
		if r.stays {
			w.allShown(r)
			w.asItStands(r, rows)
		}
	}
	var files []*said
	for _, x := range w.acked {
		if x.kind == "file" {
			files = append(files, x)
		}
	}
	for i, x := range files[max(0, len(files)-5):] {
		for _, r := range w.readers {
			if r.stays && r.name != x.by && !w.saved(r, x, fmt.Sprintf("%s-last-%d", r.name, i)) {
				w.t.Errorf("%s cannot save #%d of %s", r.name, x.seq, x.by)
			}
		}
	}
}

// noneTwice: each message stands once in a history; one that was said once and sent
// twice would have two ids.
func (w *soaking) noneTwice(r *reader, rows []row) {
	w.t.Helper()
	ids, texts := map[string]bool{}, map[string]bool{}
	for _, row := range rows {
		if ids[row.ID] || row.Text != "" && texts[row.Text] {
			w.t.Errorf("%s sees #%d twice: %.40q", r.name, row.Seq, row.Text)
		}
		ids[row.ID], texts[row.Text] = true, true
	}
}

// nothingLost: what was said while somebody was in the chat is there, what was said
// while they were out is not.
func (w *soaking) nothingLost(r *reader, rows []row) {
	w.t.Helper()
	has := map[string]bool{}
	for _, row := range rows {
		has[row.ID] = true
	}
	for _, x := range w.acked {
		if x.kind != "text" && x.kind != "file" {
			continue
		}
		for _, s := range r.spans {
			switch {
			case !s.holds(x) || x.by == r.name:
			case s.in && !has[x.id] && !x.doomed:
				w.t.Errorf("%s lost #%d of %s, which was acknowledged: %.40q", r.name, x.seq, x.by, x.texts)
			case !s.in && has[x.id]:
				w.t.Errorf("%s was out and reads #%d of %s: %.40q", r.name, x.seq, x.by, x.texts)
			}
		}
	}
}

// asItStands: edits, reactions, replies, files and what was taken back, as somebody
// sees them who was there all the time.
func (w *soaking) asItStands(r *reader, rows []row) {
	w.t.Helper()
	at := map[string]row{}
	for _, row := range rows {
		at[row.ID] = row
	}
	for _, x := range w.acked {
		row, has := at[x.id]
		switch {
		case x.kind != "text" && x.kind != "file":
			continue
		case x.gone && has:
			w.t.Errorf("%s sees #%d, which was taken back", r.name, x.seq)
		case x.doomed:
			continue
		case !has:
			w.t.Errorf("%s lost #%d of %s, which was acknowledged: %.40q", r.name, x.seq, x.by, x.texts)
			continue
		}
		if row.Seq != x.seq {
			w.t.Errorf("%s sees #%d of %s as #%d", r.name, x.seq, x.by, row.Seq)
		}
		if !slices.Contains(x.texts, row.Text) {
			w.t.Errorf("%s reads at #%d %.40q, which may be %.40q", r.name, x.seq, row.Text, x.texts)
		}
		if x.kind == "text" && x.target != nil && row.ReplyToID != x.target.id {
			w.t.Errorf("%s sees #%d as an answer to %q, and it is one to #%d", r.name, x.seq, row.ReplyToID, x.target.seq)
		}
		if x.file != "" && (row.File == nil || row.File.Name != filepath.Base(x.file)) {
			w.t.Errorf("%s sees no %s at #%d", r.name, filepath.Base(x.file), x.seq)
		}
		for _, emoji := range x.reacted {
			times := 0
			for _, reaction := range row.Reactions {
				if reaction.Emoji == emoji {
					times += len(reaction.From)
				}
			}
			if times != 1 {
				w.t.Errorf("%s sees the reaction %s at #%d %d times", r.name, emoji, x.seq, times)
			}
		}
	}
}

// allShown has a listener print what those that were killed did not: then each
// acknowledged thing that others did was shown. A slow machine may need several.
func (w *soaking) allShown(r *reader) {
	w.t.Helper()
	var missing []*said
	for end := time.Now().Add(startup); ; {
		w.print(r, w.must("listen", "--profile", r.name, "--chat", w.chat, "--json", "--timeout", "3s"))
		missing = slices.DeleteFunc(slices.Clone(w.acked), func(x *said) bool {
			return r.shown[x.kind+" "+x.id] || x.by == r.name || x.doomed
		})
		if len(missing) == 0 || time.Now().After(end) {
			break
		}
	}
	for _, x := range missing {
		w.t.Errorf("%s was never shown the %s #%d of %s: %.40q", r.name, x.kind, x.seq, x.by, strings.Join(x.texts, " or "))
	}
}
