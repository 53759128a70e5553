package local

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
	"github.com/askucher/compax-core/sdk"
)

// engine is a [Profile] that runs in this process.
type engine struct {
	*sdk.Engine
	profile string
}

// OverEngine makes a [Profile] of an engine. profile is what the program calls it.
func OverEngine(e *sdk.Engine, profile string) Profile { return engine{e, profile} }

func (e engine) Self(ctx context.Context, _ None) (Self, error) {
	me, err := e.Person(ctx, e.Identity())
	if err != nil {
		return Self{}, err
	}
	self := Self{Profile: e.profile, Identity: e.Identity(), Device: e.Device(), Name: me.Name, Username: me.Username, About: e.About(), Server: e.Server()}
	unsent, err := e.Engine.Outbox(ctx)
	for _, u := range unsent {
		if u.Failed {
			self.Failed++
		} else {
			self.Waiting++
		}
	}
	return self, err
}

func (e engine) EditAccount(ctx context.Context, r EditAccountRequest) (Self, error) {
	me, err := e.Self(ctx, None{})
	if err != nil {
		return me, err
	}
	for _, part := range []struct {
		now  *string
		want *string
	}{{&me.Name, r.Name}, {&me.About, r.About}, {&me.Username, r.Username}} {
		if part.want != nil {
			*part.now = *part.want
		}
	}
	var words *phrase.Phrase
	if r.Phrase != "" {
		w, err := phrase.Parse(r.Phrase)
		if err != nil {
			return me, err
		}
		defer w.Wipe()
		words = &w
	}
	if err := e.SetProfile(ctx, me.Name, me.About, me.Username, words); err != nil {
		return me, err
	}
	return e.Self(ctx, None{})
}

func (e engine) Sync(ctx context.Context, _ None) (None, error) { return None{}, e.Engine.Sync(ctx) }

func (e engine) Chats(ctx context.Context, _ None) ([]Chat, error) {
	all, err := e.Engine.Chats(ctx)
	if err != nil {
		return nil, err
	}
	asks, err := e.asksByRoom(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Chat, 0, len(all))
	for _, c := range all {
		one, err := e.chat(ctx, c)
		if err != nil {
			return nil, err
		}
		if one.Status == string(sdk.StatusOpen) {
			one.Asks = asks[one.Chat]
		}
		out = append(out, one)
	}
	slices.SortStableFunc(out, func(a, b Chat) int { return latest(b).Compare(latest(a)) })
	return out, nil
}

func (e engine) People(ctx context.Context, _ None) ([]Contact, error) {
	people, err := e.Engine.People(ctx)
	out := make([]Contact, len(people))
	for i, p := range people {
		out[i] = Contact{Identity: p.Identity, Name: p.Name, Username: p.Username}
	}
	return out, err
}

func latest(c Chat) time.Time {
	if c.Time == nil {
		return time.Time{}
	}
	return *c.Time
}

// kindName is a room's kind as scripts read it.
func kindName(k delivery.RoomKind) string {
	if k == delivery.RoomDirect {
		return "direct"
	}
	return "group"
}

func (e engine) chat(ctx context.Context, c sdk.Chat) (Chat, error) {
	out := Chat{
		Chat: c.Room.ID, Title: c.Title, Kind: kindName(c.Room.Kind), Status: string(c.Room.Status), Seq: c.Room.Cursor, Unread: c.Unread,
		Typing: c.Typing, Online: c.Online,
	}
	if c.Room.Suite != 0 {
		out.Suite = sdk.SuiteName(c.Room.Suite)
	}
	if c.Last != nil {
		out.Time, out.Last = moment(c.Last.TimeMS), c.Last.Text
		if c.Last.File != nil && c.Last.Text == "" {
			out.Last = c.Last.File.Name
		}
	}
	if q := c.Request; q != nil {
		from, err := e.Person(ctx, q.From)
		if err != nil {
			return out, err
		}
		out.Request, out.Status, out.From, out.Members, out.Time = true, "request", &q.From, len(q.People), moment(q.TimeMS)
		out.Safety = e.SafetyNumber(q.From).String()
		out.Title, out.With = cmp.Or(from.Name, from.Username, q.From.String()[:12]), from.Username
		return out, nil
	}
	if other := c.Room.Other; other != nil {
		p, err := e.Person(ctx, *other)
		if err != nil {
			return out, err
		}
		out.With = p.Username
	}
	return out, nil
}

func moment(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := time.UnixMilli(ms).UTC()
	return &t
}

func (w Who) String() string {
	if w.Identity != nil {
		return w.Identity.String()
	}
	return "@" + w.Username
}

func (e engine) NewRoom(ctx context.Context, r NewRoomRequest) (Room, error) {
	suite, err := sdk.ParseSuite(r.Suite)
	if err != nil {
		return Room{}, err
	}
	if r.Direct == nil {
		id, err := e.Once(r.Key).NewRoomIn(ctx, suite, r.Title)
		return Room{id}, err
	}
	other, err := e.Find(ctx, r.Direct.String())
	if err != nil {
		return Room{}, err
	}
	id, err := e.DirectIn(ctx, suite, other)
	return Room{id}, err
}

func (e engine) Upgrade(ctx context.Context, r UpgradeRequest) (Room, error) {
	suite, err := sdk.ParseSuite(r.Suite)
	if err != nil {
		return Room{}, err
	}
	id, err := e.Succeed(ctx, r.Chat, suite, r.Why)
	return Room{id}, err
}

func (e engine) Add(ctx context.Context, r MemberRequest) (None, error) {
	return None{}, e.onPerson(ctx, r, e.Engine.Add)
}

func (e engine) Remove(ctx context.Context, r MemberRequest) (None, error) {
	return None{}, e.onPerson(ctx, r, e.Engine.Remove)
}

func (e engine) onPerson(ctx context.Context, r MemberRequest, f func(context.Context, delivery.RoomID, identity.PublicKey) error) error {
	if _, err := e.RoomOf(ctx, r.Chat); err != nil { // before anybody learns who is looked for
		return err
	}
	id, err := e.Find(ctx, r.Who.String())
	if err != nil {
		return err
	}
	return f(ctx, r.Chat, id)
}

func (e engine) Accept(ctx context.Context, r RoomRequest) (None, error) {
	return None{}, e.Engine.Accept(ctx, r.Chat)
}

func (e engine) Decline(ctx context.Context, r RoomRequest) (None, error) {
	return None{}, e.Engine.Decline(ctx, r.Chat)
}

func (e engine) Leave(ctx context.Context, r RoomRequest) (None, error) {
	return None{}, e.Engine.Leave(ctx, r.Chat)
}

func (e engine) Rename(ctx context.Context, r RenameRequest) (None, error) {
	_, err := e.Engine.Rename(ctx, r.Chat, r.Title)
	return None{}, err
}

func (e engine) Members(ctx context.Context, r RoomRequest) ([]Member, error) {
	members, err := e.Engine.Members(ctx, r.Chat)
	if err != nil {
		return nil, err
	}
	if err := e.Idle(ctx, r.Chat, members); err != nil {
		return nil, err
	}
	suite, err := e.SuiteOf(ctx, r.Chat)
	if err != nil {
		return nil, err
	}
	out := make([]Member, len(members))
	for i, m := range members {
		p := m.Person
		out[i] = Member{Identity: p.Identity, Name: p.Name, Username: p.Username, Devices: m.Devices, Idle: m.Idle, Suite: sdk.SuiteName(suite), Self: p.Identity == e.Identity(), Verified: p.Verified}
	}
	return out, nil
}

func (e engine) Devices(ctx context.Context, _ None) ([]Device, error) {
	devices, err := e.Engine.Devices(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Device, len(devices))
	for i, d := range devices {
		out[i] = Device{Device: d.Device, This: d.This, Made: moment(d.EnrolledMS), Seen: moment(d.SeenMS), Idle: d.Idle, Revoked: d.Revoked}
	}
	return out, nil
}

func (e engine) Revoke(ctx context.Context, r RevokeRequest) (None, error) {
	if r.Phrase == "" {
		return None{}, e.Engine.Revoke(ctx, r.Device, nil)
	}
	words, err := phrase.Parse(r.Phrase)
	if err != nil {
		return None{}, err
	}
	defer words.Wipe()
	return None{}, e.Engine.Revoke(ctx, r.Device, &words)
}

func (e engine) Ticket(context.Context, None) (Ticket, error) {
	ticket, err := e.Engine.Ticket()
	return Ticket{ticket}, err
}

func (e engine) Approve(ctx context.Context, r ApproveRequest) (Device, error) {
	if r.Look {
		id, err := e.Offered(r.Offer)
		return Device{Device: id}, err
	}
	var words *phrase.Phrase
	if r.Phrase != "" {
		parsed, err := phrase.Parse(r.Phrase)
		if err != nil {
			return Device{}, err
		}
		defer parsed.Wipe()
		words = &parsed
	}
	id, err := e.Engine.Approve(ctx, r.Offer, words)
	return Device{Device: id}, err
}

func (e engine) Safety(ctx context.Context, r SafetyRequest) (Safety, error) {
	other, err := e.Find(ctx, r.Who.String())
	if err != nil {
		return Safety{}, err
	}
	if other == e.Identity() {
		return Safety{}, sdk.ErrYourself
	}
	if r.Confirm {
		if err := e.Verify(ctx, other, false); err != nil {
			return Safety{}, err
		}
	}
	p, err := e.Person(ctx, other)
	return Safety{
		Identity: other, Name: p.Name, Username: p.Username, Number: e.SafetyNumber(other).String(), QR: identity.PairQR(e.Identity(), other), Verified: p.Verified,
	}, err
}

func (e engine) Seen(ctx context.Context, r SeenRequest) (None, error) {
	err := e.MarkRead(ctx, r.Chat, r.Seq, false)
	if errors.Is(err, sdk.ErrNoMessage) { // an event: nothing to point at
		err = nil
	}
	return None{}, err
}
