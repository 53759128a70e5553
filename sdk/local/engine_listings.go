package local

import (
	"context"

	"github.com/askucher/compax-core/delivery"
)

func (e engine) Publish(ctx context.Context, r PublishRequest) (None, error) {
	return None{}, e.Engine.Publish(ctx, r.Chat, r.Title, r.About)
}

func (e engine) Unpublish(ctx context.Context, r RoomRequest) (None, error) {
	return None{}, e.Engine.Unpublish(ctx, r.Chat)
}

func (e engine) FindRooms(ctx context.Context, r FindRequest) ([]Listing, error) {
	found, err := e.Engine.FindRooms(ctx, r.Text)
	out := make([]Listing, len(found))
	for i, l := range found {
		out[i] = Listing{Chat: l.Room, Title: l.Title, About: l.About, Members: l.Members}
	}
	return out, err
}

func (e engine) Ask(ctx context.Context, r AskRequest) (None, error) {
	return None{}, e.AskToJoin(ctx, r.Chat, r.Note)
}

func (e engine) DeclineAsk(ctx context.Context, r MemberRequest) (None, error) {
	return None{}, e.onPerson(ctx, r, e.Engine.DeclineAsk)
}

func (e engine) asksByRoom(ctx context.Context) (map[delivery.RoomID][]Ask, error) {
	asks, err := e.Asks(ctx)
	if err != nil {
		return nil, err
	}
	out := map[delivery.RoomID][]Ask{}
	for _, a := range asks {
		p, err := e.Person(ctx, a.Who)
		if err != nil {
			return nil, err
		}
		out[a.Room] = append(out[a.Room], Ask{Identity: a.Who, Name: p.Name, Username: p.Username, Note: a.Note, Time: moment(a.TimeMS)})
	}
	return out, nil
}
