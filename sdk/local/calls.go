package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/askucher/compax-core/delivery"
)

// call is one method of [Profile] as the socket carries it.
type call[Req, Resp, Event any] struct {
	name string
	run  func(Profile, context.Context, Req, func(Event) error) (Resp, error)
}

// carried is a call without its types, as the owner looks it up.
type carried func(ctx context.Context, p Profile, request json.RawMessage, event func(any) error) (any, error)

// calls is every call by name.
var calls = map[string]carried{}

func plain[Req, Resp any](name string, run func(Profile, context.Context, Req) (Resp, error)) call[Req, Resp, None] {
	return streamed(name, func(p Profile, ctx context.Context, r Req, _ func(None) error) (Resp, error) { return run(p, ctx, r) })
}

func streamed[Req, Resp, Event any](name string, run func(Profile, context.Context, Req, func(Event) error) (Resp, error)) call[Req, Resp, Event] {
	calls[name] = func(ctx context.Context, p Profile, raw json.RawMessage, event func(any) error) (any, error) {
		var req Req
		if err := json.Unmarshal(raw, &req); err != nil {
			return nil, fmt.Errorf("%w: request of %s: %w", ErrFrame, name, err)
		}
		return run(p, ctx, req, func(e Event) error { return event(e) })
	}
	return call[Req, Resp, Event]{name, run}
}

var (
	callSelf       = plain("self", Profile.Self)
	callEditSelf   = plain("self/edit", Profile.EditAccount)
	callSync       = plain("sync", Profile.Sync)
	callChats      = plain("chats", Profile.Chats)
	callPeople     = plain("people", Profile.People)
	callNewRoom    = plain("room/new", Profile.NewRoom)
	callAdd        = plain("room/add", Profile.Add)
	callRemove     = plain("room/remove", Profile.Remove)
	callAccept     = plain("room/accept", Profile.Accept)
	callDecline    = plain("room/decline", Profile.Decline)
	callLeave      = plain("room/leave", Profile.Leave)
	callRename     = plain("room/rename", Profile.Rename)
	callUpgrade    = plain("room/upgrade", Profile.Upgrade)
	callPublish    = plain("room/publish", Profile.Publish)
	callUnpublish  = plain("room/unpublish", Profile.Unpublish)
	callFindRooms  = plain("room/find", Profile.FindRooms)
	callAsk        = plain("room/ask", Profile.Ask)
	callDeclineAsk = plain("room/decline-ask", Profile.DeclineAsk)
	callMembers    = plain("members", Profile.Members)
	callSend       = streamed("send", Profile.Send)
	callOutbox     = plain("outbox", Profile.Outbox)
	callResend     = plain("outbox/resend", Profile.Resend)
	callDrop       = plain("outbox/drop", Profile.Discard)
	callEdit       = plain("edit", Profile.Edit)
	callDelete     = plain("delete", Profile.Delete)
	callReact      = plain("react", Profile.React)
	callGet        = streamed("get", Profile.Get)
	callListen     = streamed("listen", Profile.Listen)
	callHistory    = streamed("history", Profile.History)
	callSearch     = streamed("search", Profile.Search)
	callSeen       = plain("seen", Profile.Seen)
	callDevices    = plain("devices", Profile.Devices)
	callRevoke     = plain("devices/revoke", Profile.Revoke)
	callTicket     = plain("devices/ticket", Profile.Ticket)
	callApprove    = plain("devices/approve", Profile.Approve)
	callSafety     = plain("safety", Profile.Safety)
	callTyping     = plain("typing", Profile.Typing)
	callPresence   = plain("presence", Profile.Presence)
	callSettings   = plain("settings", Profile.Settings)
	callArchive    = plain("archive", Profile.Archive)
	callPast       = plain("past", Profile.Past)
)

// Handle is an open profile: this process's own while it owns the store, else
// that of the process that does. It implements [Profile]. Begin at [Open].
type Handle struct {
	config Config
	turn   chan struct{} // held while the profile is opened, again
	own    *owner        // guarded by turn; nil: another process owns the store
}

// do runs a call where the profile is, again elsewhere when its owner ended: every
// call may be repeated.
func do[Req, Resp, Event any](ctx context.Context, h *Handle, c call[Req, Resp, Event], req Req, event func(Event) error) (Resp, error) {
	for {
		var resp Resp
		own, conn, err := h.reach(ctx)
		if err != nil {
			return resp, err
		}
		if own != nil {
			return c.run(own.profile, ctx, req, event)
		}
		err = ask(ctx, patient{conn, h.config.Patience}, c.name, req, &resp, event)
		if errors.Is(err, errMoved) || errors.Is(err, errLost) && ctx.Err() == nil {
			continue
		}
		return resp, err
	}
}

func nothing(None) error { return nil }

// Self implements [Profile].
func (h *Handle) Self(ctx context.Context, r None) (Self, error) {
	return do(ctx, h, callSelf, r, nothing)
}

// EditAccount implements [Profile].
func (h *Handle) EditAccount(ctx context.Context, r EditAccountRequest) (Self, error) {
	return do(ctx, h, callEditSelf, r, nothing)
}

// Sync implements [Profile].
func (h *Handle) Sync(ctx context.Context, r None) (None, error) {
	return do(ctx, h, callSync, r, nothing)
}

// Chats implements [Profile].
func (h *Handle) Chats(ctx context.Context, r None) ([]Chat, error) {
	return do(ctx, h, callChats, r, nothing)
}

// People implements [Profile].
func (h *Handle) People(ctx context.Context, r None) ([]Contact, error) {
	return do(ctx, h, callPeople, r, nothing)
}

// NewRoom implements [Profile].
func (h *Handle) NewRoom(ctx context.Context, r NewRoomRequest) (Room, error) {
	return do(ctx, h, callNewRoom, r, nothing)
}

// Add implements [Profile].
func (h *Handle) Add(ctx context.Context, r MemberRequest) (None, error) {
	return do(ctx, h, callAdd, r, nothing)
}

// Remove implements [Profile].
func (h *Handle) Remove(ctx context.Context, r MemberRequest) (None, error) {
	return do(ctx, h, callRemove, r, nothing)
}

// Accept implements [Profile].
func (h *Handle) Accept(ctx context.Context, r RoomRequest) (None, error) {
	return do(ctx, h, callAccept, r, nothing)
}

// Decline implements [Profile].
func (h *Handle) Decline(ctx context.Context, r RoomRequest) (None, error) {
	return do(ctx, h, callDecline, r, nothing)
}

// Leave implements [Profile].
func (h *Handle) Leave(ctx context.Context, r RoomRequest) (None, error) {
	return do(ctx, h, callLeave, r, nothing)
}

// Upgrade implements [Profile].
func (h *Handle) Upgrade(ctx context.Context, r UpgradeRequest) (Room, error) {
	return do(ctx, h, callUpgrade, r, nothing)
}

// Rename implements [Profile].
func (h *Handle) Rename(ctx context.Context, r RenameRequest) (None, error) {
	return do(ctx, h, callRename, r, nothing)
}

// Publish implements [Profile].
func (h *Handle) Publish(ctx context.Context, r PublishRequest) (None, error) {
	return do(ctx, h, callPublish, r, nothing)
}

// Unpublish implements [Profile].
func (h *Handle) Unpublish(ctx context.Context, r RoomRequest) (None, error) {
	return do(ctx, h, callUnpublish, r, nothing)
}

// FindRooms implements [Profile].
func (h *Handle) FindRooms(ctx context.Context, r FindRequest) ([]Listing, error) {
	return do(ctx, h, callFindRooms, r, nothing)
}

// Ask implements [Profile].
func (h *Handle) Ask(ctx context.Context, r AskRequest) (None, error) {
	return do(ctx, h, callAsk, r, nothing)
}

// DeclineAsk implements [Profile].
func (h *Handle) DeclineAsk(ctx context.Context, r MemberRequest) (None, error) {
	return do(ctx, h, callDeclineAsk, r, nothing)
}

// Members implements [Profile].
func (h *Handle) Members(ctx context.Context, r RoomRequest) ([]Member, error) {
	return do(ctx, h, callMembers, r, nothing)
}

// Send implements [Profile].
func (h *Handle) Send(ctx context.Context, r SendRequest, f func(Progress) error) (Sent, error) {
	return do(ctx, h, callSend, r, f)
}

// Outbox implements [Profile].
func (h *Handle) Outbox(ctx context.Context, r None) ([]Unsent, error) {
	return do(ctx, h, callOutbox, r, nothing)
}

// Resend implements [Profile].
func (h *Handle) Resend(ctx context.Context, r UnsentRequest) (Sent, error) {
	return do(ctx, h, callResend, r, nothing)
}

// Discard implements [Profile].
func (h *Handle) Discard(ctx context.Context, r UnsentRequest) (None, error) {
	return do(ctx, h, callDrop, r, nothing)
}

// Edit implements [Profile].
func (h *Handle) Edit(ctx context.Context, r EditRequest) (Sent, error) {
	return do(ctx, h, callEdit, r, nothing)
}

// Delete implements [Profile].
func (h *Handle) Delete(ctx context.Context, r DeleteRequest) (Sent, error) {
	return do(ctx, h, callDelete, r, nothing)
}

// React implements [Profile].
func (h *Handle) React(ctx context.Context, r ReactRequest) (Sent, error) {
	return do(ctx, h, callReact, r, nothing)
}

// Get implements [Profile].
func (h *Handle) Get(ctx context.Context, r GetRequest, f func(Progress) error) (File, error) {
	return do(ctx, h, callGet, r, f)
}

// Listen implements [Profile].
func (h *Handle) Listen(ctx context.Context, r ListenRequest, f func(Row) error) (None, error) {
	f = notTwice(f)
	if r.Events {
		r, f = r.following(f)
	}
	if r.Since == nil {
		return do(ctx, h, callListen, r, f)
	}
	since := *r.Since
	r.Since = &since // do asks again with what it points to
	return do(ctx, h, callListen, r, func(row Row) error {
		err := f(row)
		if err == nil && !row.Passing() {
			since = row.Seq
		}
		return err
	})
}

// notTwice passes over rows that were given before: the owner of the store may have
// ended between giving a row and moving the cursor past it, and is asked again.
func notTwice(f func(Row) error) func(Row) error {
	type place struct {
		seq  uint64
		rows map[string]bool // given of seq
	}
	given := map[delivery.RoomID]*place{}
	beside := map[string]bool{} // rows that are no entry of a log: they have no seq
	return func(row Row) error {
		if row.Passing() {
			return f(row)
		}
		name := row.Kind + " " + row.ID + " " + row.From.String()
		if row.Seq == 0 {
			if beside[name] {
				return nil
			}
			err := f(row)
			beside[name] = err == nil
			return err
		}
		p := given[row.Chat]
		if p == nil {
			p = &place{}
			given[row.Chat] = p
		}
		if row.Seq < p.seq || row.Seq == p.seq && p.rows[name] {
			return nil
		}
		if err := f(row); err != nil {
			return err
		}
		if row.Seq > p.seq {
			p.seq, p.rows = row.Seq, map[string]bool{}
		}
		p.rows[name] = true
		return nil
	}
}

// History implements [Profile].
func (h *Handle) History(ctx context.Context, r HistoryRequest, f func(Row) error) (None, error) {
	return do(ctx, h, callHistory, r, notTwice(f))
}

// Search implements [Profile].
func (h *Handle) Search(ctx context.Context, r SearchRequest, f func(Row) error) (None, error) {
	type place struct {
		chat delivery.RoomID
		id   string
	}
	given := map[place]bool{}
	return do(ctx, h, callSearch, r, func(row Row) error {
		p := place{row.Chat, row.ID}
		if given[p] {
			return nil
		}
		given[p] = true
		return f(row)
	})
}

// Seen implements [Profile].
func (h *Handle) Seen(ctx context.Context, r SeenRequest) (None, error) {
	return do(ctx, h, callSeen, r, nothing)
}

// Devices implements [Profile].
func (h *Handle) Devices(ctx context.Context, r None) ([]Device, error) {
	return do(ctx, h, callDevices, r, nothing)
}

// Revoke implements [Profile].
func (h *Handle) Revoke(ctx context.Context, r RevokeRequest) (None, error) {
	return do(ctx, h, callRevoke, r, nothing)
}

// Ticket implements [Profile].
func (h *Handle) Ticket(ctx context.Context, r None) (Ticket, error) {
	return do(ctx, h, callTicket, r, nothing)
}

// Approve implements [Profile].
func (h *Handle) Approve(ctx context.Context, r ApproveRequest) (Device, error) {
	return do(ctx, h, callApprove, r, nothing)
}

// Safety implements [Profile].
func (h *Handle) Safety(ctx context.Context, r SafetyRequest) (Safety, error) {
	return do(ctx, h, callSafety, r, nothing)
}
