package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

func checkPackage(kp *wire.KeyPackage, suite wire.CipherSuite) (identity.Credential, error) {
	if kp.CipherSuite != suite {
		return identity.Credential{}, fmt.Errorf("a key package of suite %#04x", uint16(kp.CipherSuite))
	}
	return policy.CheckLeaf(&kp.LeafNode)
}

// NewRoom makes a group room with a title, in the first of [Suites].
func (e *Engine) NewRoom(ctx context.Context, title string) (delivery.RoomID, error) {
	return e.NewRoomIn(ctx, policy.Suites[0], title)
}

// NewRoomIn is [Engine.NewRoom] in a suite of [Suites] (ErrSuite).
func (e *Engine) NewRoomIn(ctx context.Context, suite wire.CipherSuite, title string) (delivery.RoomID, error) {
	return e.newGroup(ctx, suite, title, Key{})
}

func (e *Engine) newGroup(ctx context.Context, suite wire.CipherSuite, title string, key Key) (delivery.RoomID, error) {
	if len(title) > content.MaxTitle {
		return delivery.RoomID{}, fmt.Errorf("%w: a title has at most %d bytes", identity.ErrFormat, content.MaxTitle)
	}
	id, err := e.createRoom(ctx, newRoom{kind: delivery.RoomGroup, title: title, suite: suite, key: key})
	if err != nil {
		return id, err
	}
	return id, e.flushSnapshot(ctx)
}

// Direct gives the room of this account and one other identity, made when there
// is none, in the first of [Suites].
func (e *Engine) Direct(ctx context.Context, with identity.PublicKey) (delivery.RoomID, error) {
	return e.DirectIn(ctx, policy.Suites[0], with)
}

// DirectIn is [Engine.Direct] in a suite of [Suites] when the room is made
// (ErrSuite, ErrYourself). One that is there keeps its own: [Engine.Succeed] changes it.
// Who asks for the room that the other one has invited to accepts the invitation.
func (e *Engine) DirectIn(ctx context.Context, suite wire.CipherSuite, with identity.PublicKey) (delivery.RoomID, error) {
	if with == e.account.Identity {
		return delivery.RoomID{}, ErrYourself
	}
	known, err := e.directWith(ctx, with)
	if err != nil {
		return delivery.RoomID{}, err
	}
	if known == nil { // an invitation may lie in the mailbox
		if err := e.ReadMail(ctx); err != nil {
			return delivery.RoomID{}, err
		}
		if known, err = e.directWith(ctx, with); err != nil {
			return delivery.RoomID{}, err
		}
	}
	if known != nil {
		return *known, e.completeDirect(ctx, *known, with)
	}
	invited, err := e.invitedBy(ctx, with)
	if err != nil {
		return delivery.RoomID{}, err
	}
	if invited != nil {
		if err := e.Accept(ctx, *invited); !errors.Is(err, ErrNoRoom) { // one that can never be opened is none
			return *invited, err
		}
	}
	id, err := e.createRoom(ctx, newRoom{kind: delivery.RoomDirect, others: []identity.PublicKey{with}, suite: suite})
	if err != nil {
		return id, err
	}
	if err := e.Add(ctx, id, with); err != nil {
		return id, err
	}
	return id, e.flushSnapshot(ctx)
}

// directWith is the open direct room with somebody, nil when there is none.
func (e *Engine) directWith(ctx context.Context, with identity.PublicKey) (id *delivery.RoomID, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		rooms, err := scan[Room](tx, TableRoom, "")
		for _, r := range rooms {
			if r.Kind == delivery.RoomDirect && r.Status == StatusOpen && r.Other != nil && *r.Other == with {
				id = &r.ID
			}
		}
		return err
	})
	return id, err
}

// invitedBy is the direct room that somebody invites to and that was not accepted yet,
// nil when there is none.
func (e *Engine) invitedBy(ctx context.Context, with identity.PublicKey) (*delivery.RoomID, error) {
	requests, err := e.Requests(ctx)
	for _, q := range requests {
		if q.Kind == delivery.RoomDirect && q.From == with {
			return &q.Room, err
		}
	}
	return nil, err
}

// completeDirect adds the other person when making the room was interrupted.
func (e *Engine) completeDirect(ctx context.Context, id delivery.RoomID, with identity.PublicKey) error {
	r, done, err := e.enter(ctx, id)
	if err != nil {
		return err
	}
	alone := r.state.roster != nil && r.state.roster.Has(with) == 0 && r.rec.Cursor == 0
	done()
	if alone {
		return e.Add(ctx, id, with)
	}
	return nil
}

// newRoom is what a room is made of.
type newRoom struct {
	kind     delivery.RoomKind
	title    string
	others   []identity.PublicKey // who is listed from the start
	suite    wire.CipherSuite
	succeeds *room // whose rules and settings come over; nil: none's
	key      Key   // noted with the room, when there is one
	// id is the room's, with succeeds: of one that a restored service has lost; nil = a
	// random one.
	id *delivery.RoomID
}

// createRoom makes a group of this leaf alone, stores it and makes the room.
func (e *Engine) createRoom(ctx context.Context, n newRoom) (delivery.RoomID, error) {
	if !slices.Contains(policy.Suites, n.suite) {
		return delivery.RoomID{}, fmt.Errorf("%w: %#04x", ErrSuite, uint16(n.suite))
	}
	info, err := e.home(ctx)
	if err != nil {
		return delivery.RoomID{}, err
	}
	id, err := delivery.NewRoomID(info.Home, e.Random)
	if err != nil {
		return id, err
	}
	if n.id != nil {
		id = *n.id
	}
	creation := policy.Creation{
		Room: id, Kind: n.kind, Domain: info.Domain, SenderKey: info.SenderKey, Creator: e.account.Identity, Others: n.others, Suite: n.suite,
	}
	if n.succeeds != nil {
		creation.Succeeds = n.succeeds.state.policy.Settled(n.succeeds.state.roster, judged(n.succeeds.state.group.Proposals()))
	}
	extensions, err := creation.Extensions()
	if err != nil {
		return id, err
	}
	now := e.Now()
	step, err := e.mls.Create(mls.CreateParams{
		Random: e.Random, Now: now, CipherSuite: n.suite, GroupID: id[:], Extensions: extensions,
		Leaf: mls.CreatorLeaf{
			Signer: e.signer(n.suite), Credential: e.credential(), Capabilities: policy.Capabilities(), Extensions: policy.LeafExtensions(),
			NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime),
		},
	})
	if err != nil {
		return id, fmt.Errorf("sdk: make a group: %w", err)
	}
	gi, err := step.Next.GroupInfo(false, nil)
	if err != nil {
		return id, fmt.Errorf("sdk: make a group: %w", err)
	}
	s, err := newState(step.Next)
	if err != nil {
		return id, err
	}
	// The service first: a room that it does not know is of no use, and one that
	// this device forgot hurts nobody.
	founding := delivery.CreateRoomRequest{GroupInfo: gi, Tree: step.Next.RatchetTree()}
	if err := e.client.CreateRoom(ctx, founding); err != nil {
		return id, e.fail(ctx, err)
	}
	rec := e.newRecord(id, s, 0)
	rec.Title = n.title
	if n.succeeds != nil {
		rec.About, rec.Disappear, rec.Muted = n.succeeds.rec.About, n.succeeds.rec.Disappear, n.succeeds.rec.Muted
	}
	err = e.Store.Update(ctx, func(tx Tx) error {
		if err := writeDelta(tx, id, step.Delta); err != nil {
			return err
		}
		if n.key != (Key{}) {
			if err := tx.Put(TableSetting, madeKey(n.key), []byte(id.String())); err != nil {
				return err
			}
		}
		if err := putFounding(tx, id, e.nowMS(), founding); err != nil {
			return err
		}
		if err := tx.Put(TableSetting, settingDirty, []byte{1}); err != nil {
			return err
		}
		if n.succeeds != nil { // with the room, so that who is interrupted goes on with it
			n.succeeds.rec.Successor = &id
			if n.id != nil {
				n.succeeds.goesOnAt(id, e.nowMS())
			}
			if err := n.succeeds.save(tx); err != nil {
				return err
			}
		}
		return put(tx, TableRoom, id.String(), rec)
	})
	if err != nil {
		return id, err
	}
	step.Forget()
	e.settle(id, rec, s)
	return id, nil
}

// settle puts a room that was just entered into memory.
func (e *Engine) settle(id delivery.RoomID, rec Room, s state) {
	r := emptyRoom()
	r.rec, r.state = rec, s
	e.mu.Lock()
	defer e.mu.Unlock()
	if old := e.rooms[id]; old != nil {
		r.turn, r.files = old.turn, old.files
	}
	e.rooms[id] = r
	e.publish(r)
}

// Add brings an identity with all its devices into a room, in one commit. Being
// there already is no error (ErrNobody when they have no device that can be added,
// ErrSuite, ErrDirect).
func (e *Engine) Add(ctx context.Context, id delivery.RoomID, who identity.PublicKey) error {
	r, done, err := e.writable(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	if r.rec.Kind == delivery.RoomDirect && (r.rec.Other == nil || *r.rec.Other != who) || r.rec.Kind == delivery.RoomSelf {
		return ErrDirect
	}
	var packages []*wire.KeyPackage
	err = e.commit(ctx, r, func(ctx context.Context) ([]wire.Proposal, bool, error) {
		if r.state.roster.Has(who) > 0 {
			return nil, true, nil
		}
		if packages == nil {
			if packages, err = e.claim(ctx, id, r.state.group.CipherSuite(), who); err != nil {
				return nil, false, err
			}
		}
		var out []wire.Proposal
		if u, needed := r.state.policy.Participants.Adding(policy.RoleMember, e.account.Domain, who); needed {
			out = append(out, mls.AppDataUpdateProposal(policy.ComponentParticipants, u.Bytes()))
		}
		for _, kp := range packages {
			out = append(out, mls.AddProposal(kp))
		}
		return out, false, nil
	})
	if err != nil {
		return err
	}
	if err := e.befriend(ctx, who); err != nil {
		return err
	}
	if err := e.DeclineAsk(ctx, id, who); err != nil { // it was answered
		return err
	}
	if err := e.introduce(ctx, r); err != nil {
		return err
	}
	return e.meet(ctx, r)
}

// introduce tells a room with somebody new in it what it is called and who this
// is. Who knows both already is not told again by their client.
func (e *Engine) introduce(ctx context.Context, r *room) error {
	if r.rec.Title != "" || r.rec.About != "" || r.rec.Disappear > 0 {
		info := content.RoomInfo{Title: &r.rec.Title}
		if r.rec.About != "" {
			info.About = &r.rec.About
		}
		if r.rec.Disappear > 0 {
			info.Disappear = &r.rec.Disappear
		}
		if _, err := e.write(ctx, r, nil, func(h content.Header) (content.Message, error) {
			h.Expires = nil
			return content.New(h, info)
		}); err != nil {
			return err
		}
	}
	return e.announceNow(ctx, r)
}

// announce tells a room this account's profile: when it changed, else at most
// once a day.
func (e *Engine) announce(ctx context.Context, r *room) error {
	const day = 24 * 60 * 60 * 1000
	if r.rec.Kind == delivery.RoomSelf || r.rec.Profile == e.self().Profile && e.nowMS()-r.rec.Announced < day {
		return nil
	}
	return e.announceNow(ctx, r)
}

// announceNow is announce, whatever was announced before. One that waits in the outbox
// counts.
func (e *Engine) announceNow(ctx context.Context, r *room) error {
	me, now := e.self(), e.nowMS()
	p := content.Profile{Name: me.Name, About: me.About, Version: me.Profile}
	_, err := e.write(ctx, r, nil, func(h content.Header) (content.Message, error) {
		h.Expires = nil
		return content.New(h, p)
	})
	if err != nil && !errors.Is(err, ErrKept) {
		return err
	}
	before := r.rec
	r.rec.Profile, r.rec.Announced = me.Profile, now
	if s := e.Store.Update(context.WithoutCancel(ctx), r.save); s != nil {
		r.rec = before
		return errors.Join(err, s)
	}
	return err
}

// Remove takes an identity with all its devices out of a room, in one commit. Only
// an admin may ([delivery.CodeRefused]); who is not there is no error (ErrYourself,
// who leaves; ErrDirect outside of groups).
func (e *Engine) Remove(ctx context.Context, id delivery.RoomID, who identity.PublicKey) error {
	r, done, err := e.writable(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	if r.rec.Kind != delivery.RoomGroup {
		return ErrDirect
	}
	if who == e.account.Identity {
		return ErrYourself
	}
	return e.commit(ctx, r, func(context.Context) ([]wire.Proposal, bool, error) {
		if r.state.roster.Has(who) == 0 {
			return nil, true, nil
		}
		me, _ := e.member(r)
		if !policy.IsAdmin(r.state.policy, r.state.roster, me) {
			return nil, false, delivery.Refuse(delivery.CodeRefused, "only an admin removes others")
		}
		held := judged(r.state.group.Proposals())
		var out []wire.Proposal
		if u, needed := r.state.policy.Participants.Removing(false, who); needed {
			out = append(out, mls.AppDataUpdateProposal(policy.ComponentParticipants, u.Bytes()))
		}
		for _, m := range r.state.roster.Members() {
			if m.Identity == who && !policy.UnderRemoval(held, m.Leaf) {
				out = append(out, mls.RemoveProposal(m.Leaf))
			}
		}
		return out, false, nil
	})
}

// Leave takes this account out of a room with all its devices: this one proposes
// SelfRemove, and who stays commits it together with the others' removal. Leaving twice is no
// error.
func (e *Engine) Leave(ctx context.Context, id delivery.RoomID) error {
	r, done, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	if r.rec.Status == StatusLeft {
		return nil
	}
	if err := e.mayWrite(r); err != nil {
		return err
	}
	if r.rec.Kind == delivery.RoomSelf {
		return ErrDirect
	}
	return e.leave(ctx, r)
}

// leave proposes it in the room's present epoch. The caller holds the room's turn.
func (e *Engine) leave(ctx context.Context, r *room) error {
	for try := range maxTries {
		if err := e.catchUp(ctx, r); err != nil {
			return err
		}
		if err := e.mayAct(r); err != nil {
			return err
		}
		err := e.proposeLeaving(ctx, r)
		if delivery.CodeOf(err) == delivery.CodeStaleEpoch {
			if err := e.pause(ctx, try, err); err != nil {
				return err
			}
			continue
		}
		if err != nil && delivery.CodeOf(err) != delivery.CodeConflict {
			return e.fail(ctx, err)
		}
		before := r.rec
		r.rec.Status, r.rec.Leaving = StatusLeft, false
		err = e.Store.Update(ctx, func(tx Tx) error {
			if err := tx.Put(TableSetting, settingDirty, []byte{1}); err != nil {
				return err
			}
			l := Line{Room: r.rec.ID, Seq: r.rec.Cursor, Epoch: r.rec.Epoch, From: e.account.Identity, TimeMS: e.nowMS(), Kind: LineLeave, ID: eventID(r.rec.ID, r.rec.Cursor, "left", 0)}
			if err := tx.PutLine(l); err != nil {
				return err
			}
			return r.save(tx)
		})
		if err != nil {
			r.rec = before
		}
		return err
	}
	return goesOn("others change the chat faster than this device: try again")
}

func (e *Engine) proposeLeaving(ctx context.Context, r *room) error {
	if e.underRemoval(r) {
		return nil // another device of this account has said so
	}
	// What comes of it is read from the log, so nothing is stored here.
	made, err := r.state.group.Propose(mls.ProposeParams{Random: e.Random, Now: e.Now(), Proposal: mls.SelfRemoveProposal()})
	if err != nil {
		return fmt.Errorf("sdk: propose to leave: %w", err)
	}
	if _, err := e.client.Append(ctx, r.rec.ID, delivery.AppendRequest{Entry: made.Message}); err != nil {
		return err
	}
	return e.catchUp(ctx, r)
}

// Rename gives a room another title, of at most content.MaxTitle bytes. The service
// does not learn it.
func (e *Engine) Rename(ctx context.Context, id delivery.RoomID, title string) (Sent, error) {
	return e.Write(ctx, id, func(h content.Header) (content.Message, error) {
		h.Expires = nil
		return content.New(h, content.RoomInfo{Title: &title})
	})
}

// Disappear sets after how many seconds new messages are forgotten; 0 = never.
func (e *Engine) Disappear(ctx context.Context, id delivery.RoomID, seconds uint32) (Sent, error) {
	return e.Write(ctx, id, func(h content.Header) (content.Message, error) {
		h.Expires = nil
		return content.New(h, content.RoomInfo{Disappear: &seconds})
	})
}
