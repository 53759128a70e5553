package sdk

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// note writes down what an entry means, in the transaction that stores the state
// behind it.
func (e *Engine) note(tx Tx, r *room, o opened) error {
	base := Line{Room: r.rec.ID, Seq: o.entry.Seq, Epoch: o.entry.Epoch, TimeMS: o.entry.AcceptedMS}
	switch {
	case o.app != nil:
		cred, err := policy.CheckCredential(&o.app.Sender.Node.Credential, o.app.Sender.Node.SignatureKey)
		if err != nil {
			return e.unread(tx, base, "its sender's credential is not valid")
		}
		if o.app.Own {
			r.rec.Renew = whyWritten
		}
		base.From, base.Device = cred.Identity(), cred.DeviceID()
		return e.said(tx, r, base, o.app.Content)
	case o.commit != nil:
		return e.changedRoom(tx, r, base, o)
	case o.own:
		return e.ownEcho(tx, r, base, o)
	case o.cause != "":
		return e.unread(tx, base, o.cause)
	}
	return nil
}

// eventID is the id of a line that no message made.
func eventID(room delivery.RoomID, seq uint64, what string, n int) content.MessageID {
	b := append([]byte("compax-event-v1"), room[:]...)
	b = binary.BigEndian.AppendUint64(b, seq)
	sum := sha256.Sum256(append(b, fmt.Sprintf("%s %d", what, n)...))
	sum[0] = 0xff // no hash algorithm: never the id of a message
	return content.MessageID(sum)
}

// unread notes an entry that cannot be read, with its cause.
func (e *Engine) unread(tx Tx, l Line, cause string) error {
	l.Kind, l.Cause, l.ID = LineUnread, cause, eventID(l.Room, l.Seq, "unread", 0)
	return tx.PutLine(l)
}

// gap notes that everything from one seq to another is missing, and why.
func (e *Engine) gap(tx Tx, r *room, from, to uint64, why string) error {
	l := Line{Room: r.rec.ID, Seq: to, TimeMS: e.nowMS(), Kind: LineGap, GapFrom: from, ID: eventID(r.rec.ID, from, "gap", 0)}
	l.Cause = fmt.Sprintf("re-joined: %s; %d to %d cannot be read here", why, from, to)
	return tx.PutLine(l)
}

// changedRoom notes who came and went by a commit.
func (e *Engine) changedRoom(tx Tx, r *room, base Line, o opened) error {
	if o.copied {
		r.rec.Renew = whyWritten
		if o.made {
			r.rec.Renew = whyUnheard
		}
		return nil
	}
	if o.commit.SelfRemoved {
		if r.rec.Status == StatusOpen {
			r.rec.Status = StatusOut
		}
		return e.roster(tx, base, nil, []identity.PublicKey{e.account.Identity})
	}
	before, after := present(o.before), present(o.after)
	if err := e.keepRevocations(tx, o); err != nil {
		return err
	}
	r.rec.Leaving = r.rec.Leaving || leftBy(o, e.account.Identity)
	var came, went []identity.PublicKey
	for id := range after {
		if before[id] {
			continue
		}
		came = append(came, id)
		if err := e.came(tx, r, id); err != nil {
			return err
		}
	}
	for id := range before {
		if !after[id] {
			went = append(went, id)
		}
	}
	return e.roster(tx, base, came, went)
}

// leftBy reports whether an identity has left by a commit that could not take all
// its leaves out: an external one. The others follow.
func leftBy(o opened, who identity.PublicKey) bool {
	for _, p := range judged(o.commit.Proposals) {
		if p.Proposal.ProposalType != wire.ProposalTypeSelfRemove || o.before == nil {
			continue
		}
		if m, in := o.before.At(p.Sender.LeafIndex); in && m.Identity == who {
			return true
		}
	}
	return false
}

func present(r *policy.Roster) map[identity.PublicKey]bool {
	out := map[identity.PublicKey]bool{}
	if r != nil {
		for _, id := range r.Identities() {
			out[id] = true
		}
	}
	return out
}

func (e *Engine) roster(tx Tx, base Line, came, went []identity.PublicKey) error {
	n := 0
	for _, list := range []struct {
		kind LineKind
		ids  []identity.PublicKey
	}{{LineJoin, came}, {LineLeave, went}} {
		slices.SortFunc(list.ids, identity.PublicKey.Compare)
		for _, id := range list.ids {
			l := base
			l.Kind, l.From, l.ID = list.kind, id, eventID(base.Room, base.Seq, "roster", n)
			if err := tx.PutLine(l); err != nil {
				return err
			}
			n++
		}
	}
	return nil
}

// keepRevocations remembers revoked devices beyond the room that told of them.
func (e *Engine) keepRevocations(tx Tx, o opened) error {
	after, err := policy.RoomOf(o.commit.Extensions)
	if err != nil {
		return err
	}
	for _, rev := range after.Revocations {
		f := rev.Fields()
		if err := tx.Put(TableRevoked, f.Identity.String()+"/"+f.DeviceID.String(), rev.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// said notes a message: it is decoded, checked against who sent it and where,
// and its meaning applied. A message that is here already is passed over.
func (e *Engine) said(tx Tx, r *room, l Line, encoded []byte) error {
	m, err := content.Decode(encoded)
	if err != nil {
		return e.unread(tx, l, "its content is malformed")
	}
	author, err := content.ParseUserURI(m.SenderURI())
	if err != nil || author != l.From {
		return e.unread(tx, l, "it says that somebody else wrote it")
	}
	if m.RoomURI() != r.rec.URI {
		return e.unread(tx, l, "it was written for another chat")
	}
	if l.ID, err = m.ID(); err != nil {
		return e.unread(tx, l, "its content is malformed")
	}
	if _, found, err := tx.Line(r.rec.ID, l.ID); err != nil || found {
		return err
	}
	l.ReplyTo, l.Content = m.InReplyTo, encoded
	if x := m.Expires; x != nil {
		l.ExpireMS = int64(x.Seconds) * 1000
		if x.Relative {
			l.ExpireMS += l.TimeMS
		}
	}
	switch m.Kind() {
	case content.KindEdit:
		return e.edited(tx, l, m)
	case content.KindDelete:
		return e.deleted(tx, l, m)
	case content.KindReaction:
		l.Kind, l.Target, l.ReplyTo = LineReaction, m.InReplyTo, content.MessageID{}
		l.Text = emoji(m.Items())
		return tx.PutLine(l)
	case content.KindUnreact:
		return e.unreacted(tx, l, m)
	case content.KindControl:
		return e.control(tx, r, l, m.Items())
	case content.KindEmpty:
		return nil
	}
	show(&l, m.Items())
	if err := tx.PutLine(l); err != nil || l.Seq < delivery.IncarnationJump {
		return err
	}
	return asItStands(tx, r.rec.ID, l.ID) // after a restore what is about it may come before it
}

func emoji(items []content.Item) string {
	var out []string
	for _, i := range items {
		if x, ok := i.(content.Reaction); ok {
			out = append(out, x.Emoji)
		}
	}
	return strings.Join(out, " ")
}

// show gives a line what its items say to a person.
func show(l *Line, items []content.Item) {
	l.Kind, l.Text, l.File = LineOther, "", nil
	var unknown []string
	for _, i := range items {
		switch i := i.(type) {
		case content.Text:
			if l.Text != "" {
				l.Text += "\n"
			}
			l.Text += i.Text
			if l.Kind == LineOther {
				l.Kind = LineText
			}
		case content.Attachment:
			l.Kind = LineFile
			if l.File == nil {
				l.File = &FileView{Name: i.Filename, Type: i.ContentType, Size: i.Size}
			}
		case content.Poll:
			l.Kind, l.Text = LinePoll, i.Question+"\n"+strings.Join(i.Options, "\n")
		case content.Vote:
			l.Kind, l.Target, l.Text = LineVote, l.ReplyTo, fmt.Sprint(i.Options)
		case content.PollClose:
			l.Kind, l.Target, l.Text = LineVote, l.ReplyTo, "closed"
		case content.Tap:
			l.Kind, l.Target, l.Text = LineTap, l.ReplyTo, i.Data
		case content.Location:
			l.Text = strings.TrimSpace(fmt.Sprintf("%.6f, %.6f %s", i.Latitude, i.Longitude, i.Title))
		case content.Contact:
			l.Text = strings.TrimSpace(i.FirstName + " " + i.LastName + " " + i.Phone)
		case content.Dice:
			l.Text = fmt.Sprintf("%s %d", i.Emoji, i.Value)
		case content.Unknown:
			unknown = append(unknown, i.MediaType)
		}
	}
	if len(unknown) > 0 {
		l.Text = strings.TrimSpace(l.Text + "\n[not understood: " + strings.Join(unknown, ", ") + "]")
	}
}

// edited applies an edit. It counts only when its sender wrote the original.
func (e *Engine) edited(tx Tx, l Line, m content.Message) error {
	l.Kind, l.Target, l.ReplyTo = LineEdit, m.Replaces, content.MessageID{}
	original, found, err := tx.Line(l.Room, m.Replaces)
	if err != nil {
		return err
	}
	if found && original.From != l.From {
		return e.unread(tx, l, "it edits a message that somebody else wrote")
	}
	shown := l
	show(&shown, m.Items())
	l.Text = shown.Text
	if found && !original.Deleted {
		if err := putFirst(tx, original); err != nil {
			return err
		}
		original.Text, original.File, original.Kind, original.Edited, original.Content = shown.Text, shown.File, shown.Kind, true, l.Content
		if err := tx.PutLine(original); err != nil {
			return err
		}
	} else if found {
		l.Text, l.Content = "", nil
	}
	return tx.PutLine(l)
}

// deleted takes a message back: its text, and that of its edits, is gone here.
func (e *Engine) deleted(tx Tx, l Line, m content.Message) error {
	l.Kind, l.Target = LineDelete, m.Replaces
	if !l.Mine { // it is to be said again when a restored service has lost it
		l.Content = nil
	}
	original, found, err := tx.Line(l.Room, m.Replaces)
	if err != nil {
		return err
	}
	if found && original.From != l.From {
		return e.unread(tx, l, "it deletes a message that somebody else wrote")
	}
	if found {
		original.Text, original.File, original.Content, original.Deleted = "", nil, nil, true
		if err := errors.Join(tx.PutLine(original), forgetFirst(tx, original)); err != nil {
			return err
		}
	}
	about, err := tx.Lines(LineQuery{Room: l.Room, Target: &m.Replaces})
	if err != nil {
		return err
	}
	for _, edit := range about {
		if edit.Kind == LineEdit && edit.From == l.From { // the original may not be here to say whose it is
			edit.Text, edit.Content = "", nil
			if err := tx.PutLine(edit); err != nil {
				return err
			}
		}
	}
	return tx.PutLine(l)
}

func (e *Engine) unreacted(tx Tx, l Line, m content.Message) error {
	l.Kind, l.Target, l.ReplyTo = LineUnreact, m.Replaces, content.MessageID{}
	reaction, found, err := tx.Line(l.Room, m.Replaces)
	if err != nil {
		return err
	}
	if found && (reaction.From != l.From || reaction.Kind != LineReaction) {
		return e.unread(tx, l, "it takes back a reaction of somebody else")
	}
	if found {
		reaction.Deleted, reaction.Text = true, ""
		if err := tx.PutLine(reaction); err != nil {
			return err
		}
	}
	return tx.PutLine(l)
}

// control applies a message to the program. What changes nothing leaves no line.
func (e *Engine) control(tx Tx, r *room, l Line, items []content.Item) error {
	encoded := l.Content
	l.Content = nil
	for _, i := range items {
		switch i := i.(type) {
		case content.RoomInfo:
			if l.Mine && i.Picture == nil {
				l.Content = encoded
			}
			return e.roomInfo(tx, r, l, i)
		case content.Profile:
			return e.profile(tx, r, l, i)
		case content.Successor:
			if id, err := delivery.ParseRoomID(i.Room); err == nil && r.decides(l.From) {
				r.rec.Successor, r.rec.Named = &id, true
			}
			l.Kind, l.Text = LineControl, "successor "+i.Room
		case content.Receipt:
			l.Kind, l.Text = LineReceipt, fmt.Sprintf("delivered %d, read %d", len(i.Delivered), len(i.Read))
		case content.Verified:
			if err := e.ownWord(tx, r, l, i); err != nil {
				return err
			}
			l.Kind, l.Text = LineControl, "verified "+i.Identity.String()
		case content.ReadMark:
			return e.readMark(tx, r, l, i)
		default:
			l.Kind, l.Text = LineControl, strings.TrimPrefix(fmt.Sprintf("%T", i), "content.")
		}
	}
	return tx.PutLine(l)
}

func (e *Engine) roomInfo(tx Tx, r *room, l Line, i content.RoomInfo) error {
	changed := false
	if i.Title != nil && l.Seq >= r.rec.TitleSeq {
		changed = *i.Title != r.rec.Title
		r.rec.Title, r.rec.TitleSeq = *i.Title, l.Seq
	}
	if i.About != nil {
		changed = changed || *i.About != r.rec.About
		r.rec.About = *i.About
	}
	if i.Disappear != nil {
		changed = changed || *i.Disappear != r.rec.Disappear
		r.rec.Disappear = *i.Disappear
	}
	if !changed && i.Picture == nil && !i.NoPicture {
		return nil
	}
	if err := tx.Put(TableSetting, settingDirty, []byte{1}); err != nil {
		return err
	}
	l.Kind, l.Text = LineTitle, r.rec.Title
	if i.Picture != nil {
		l.Kind = LinePicture
	}
	return tx.PutLine(l)
}

// profile notes what somebody calls themselves. A username is not theirs because they
// sign that it is: anybody can sign any. It is taken from the directory, which gives
// each to one identity, and pinned ([Engine.Find]).
func (e *Engine) profile(tx Tx, r *room, l Line, i content.Profile) error {
	if l.From == e.account.Identity { // another device of this account may have said so
		r.rec.Profile = max(r.rec.Profile, i.Version)
	}
	p := Person{Identity: l.From}
	if _, err := get(tx, TablePerson, l.From.String(), &p); err != nil {
		return err
	}
	if i.Version < p.Version || i.Version == p.Version && p.Name == i.Name {
		return nil
	}
	p.Name, p.Version, p.Bot = i.Name, i.Version, i.Bot
	if err := put(tx, TablePerson, l.From.String(), p); err != nil {
		return err
	}
	l.Kind, l.Text = LineProfile, p.Name
	return tx.PutLine(l)
}

// ownWord takes over what another device of this account says in the self room.
func (e *Engine) ownWord(tx Tx, r *room, l Line, v content.Verified) error {
	if r.rec.Kind != delivery.RoomSelf || l.From != e.account.Identity {
		return nil
	}
	p := Person{Identity: v.Identity}
	if _, err := get(tx, TablePerson, v.Identity.String(), &p); err != nil {
		return err
	}
	p.judge(!v.Revoked, v.At)
	return put(tx, TablePerson, v.Identity.String(), p)
}

// readMark moves this account's place in a room, as another device of it says.
func (e *Engine) readMark(tx Tx, r *room, l Line, m content.ReadMark) error {
	id, err := delivery.ParseRoomID(m.Room)
	if err != nil || r.rec.Kind != delivery.RoomSelf || l.From != e.account.Identity {
		return nil // not for us to follow
	}
	seen, found, err := tx.Line(id, m.UpTo)
	if err != nil || !found {
		return err
	}
	var rec Room
	if found, err := get(tx, TableRoom, id.String(), &rec); err != nil || !found || rec.Read >= seen.Seq {
		return err
	}
	rec.Read = seen.Seq
	if err := put(tx, TableRoom, id.String(), rec); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if live := e.rooms[id]; live != nil {
		live.stale.Store(true)
	}
	return nil
}
