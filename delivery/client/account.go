package client

import (
	"context"
	"fmt"
	"strconv"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// Info reads what the service offers. It needs no session.
func (c *Client) Info(ctx context.Context) (delivery.Info, error) {
	var i delivery.Info
	err := c.json(ctx, call{route: delivery.RouteInfo, open: true}, nil, &i)
	return i, err
}

// Devices lists the devices and revocations of the session's own identity.
func (c *Client) Devices(ctx context.Context) (delivery.DevicesResponse, error) {
	var out delivery.DevicesResponse
	err := c.json(ctx, call{route: delivery.RouteDevices}, nil, &out)
	return out, err
}

// DevicesOf lists somebody's devices and revocations. Nothing of it is
// verified: the caller verifies each credential and revocation.
func (c *Client) DevicesOf(ctx context.Context, id identity.PublicKey) (delivery.DevicesResponse, error) {
	var out delivery.DevicesResponse
	err := c.json(ctx, call{route: delivery.RoutePerson, path: []string{id.String()}}, nil, &out)
	return out, err
}

// Revoke ends a device for good by a revocation that its identity signed.
func (c *Client) Revoke(ctx context.Context, revocation []byte) error {
	return c.json(ctx, call{route: delivery.RouteRevoke, open: true}, delivery.RevokeRequest{Revocation: revocation}, nil)
}

// Snapshot reads the account's sealed state; version 0 when there is none.
func (c *Client) Snapshot(ctx context.Context) (delivery.SnapshotBody, error) {
	var out delivery.SnapshotBody
	err := c.json(ctx, call{route: delivery.RouteSnapshot}, nil, &out)
	return out, err
}

// PutSnapshot replaces exactly s.Version; [delivery.CodeConflict] when another
// device was faster.
func (c *Client) PutSnapshot(ctx context.Context, s delivery.SnapshotBody) error {
	return c.json(ctx, call{route: delivery.RouteSetSnap}, s, nil)
}

// PublishKeyPackages adds key packages of this device, MLSMessages.
func (c *Client) PublishKeyPackages(ctx context.Context, packages [][]byte) (delivery.KeyPackageCount, error) {
	var out delivery.KeyPackageCount
	err := c.json(ctx, call{route: delivery.RoutePublish}, delivery.PublishRequest{Packages: packages}, &out)
	return out, err
}

// CountKeyPackages counts this device's unclaimed packages of a suite.
func (c *Client) CountKeyPackages(ctx context.Context, suite uint16) (delivery.KeyPackageCount, error) {
	var out delivery.KeyPackageCount
	q := call{route: delivery.RouteKeyCount, query: map[string]string{"suite": strconv.Itoa(int(suite))}}
	err := c.json(ctx, q, nil, &out)
	return out, err
}

// ClaimKeyPackages takes one package of each of an identity's devices. It is
// sent once: a repetition would take another.
func (c *Client) ClaimKeyPackages(ctx context.Context, req delivery.ClaimRequest) (delivery.ClaimResponse, error) {
	var out delivery.ClaimResponse
	err := c.json(ctx, call{route: delivery.RouteClaim, once: true}, req, &out)
	return out, err
}

// Mailbox reads a page of items after an id, in the order of their ids: a page that is
// not that is an error that wraps [ErrGarbage].
func (c *Client) Mailbox(ctx context.Context, after uint64) (delivery.MailResponse, error) {
	var out delivery.MailResponse
	q := call{route: delivery.RouteMailbox, query: map[string]string{"after": strconv.FormatUint(after, 10)}}
	if err := c.json(ctx, q, nil, &out); err != nil {
		return out, err
	}
	last := after
	for _, m := range out.Items {
		if m.ID <= last { // who asks on would ask without end
			return delivery.MailResponse{}, fmt.Errorf("%w: mail %d follows %d", ErrGarbage, m.ID, last)
		}
		last = m.ID
	}
	if out.More && last == after {
		return delivery.MailResponse{}, fmt.Errorf("%w: more mail than after %d, and none of it", ErrGarbage, after)
	}
	return out, nil
}

// AckMail acknowledges items.
func (c *Client) AckMail(ctx context.Context, ids ...uint64) error {
	req := delivery.AckRequest{}
	for _, id := range ids {
		req.IDs = append(req.IDs, strconv.FormatUint(id, 10))
	}
	return c.json(ctx, call{route: delivery.RouteAck}, req, nil)
}

// PutProfile sets the identity's signed line in the directory;
// [delivery.CodeConflict] when somebody else has the username.
func (c *Client) PutProfile(ctx context.Context, record []byte) error {
	return c.json(ctx, call{route: delivery.RouteSetProfile}, delivery.ProfileBody{Record: record}, nil)
}

// PersonByUsername finds the signed record of a username; the caller verifies
// and pins it.
func (c *Client) PersonByUsername(ctx context.Context, username string) ([]byte, error) {
	records, err := c.people(ctx, map[string]string{"username": username})
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, delivery.Refuse(delivery.CodeNotFound, "nobody has this username here")
	}
	return records[0], nil
}

// SearchPeople finds records by the beginning of the username, ≥ 2 characters.
func (c *Client) SearchPeople(ctx context.Context, prefix string) ([][]byte, error) {
	return c.people(ctx, map[string]string{"prefix": prefix})
}

func (c *Client) people(ctx context.Context, query map[string]string) ([][]byte, error) {
	var out delivery.ProfilesResponse
	err := c.json(ctx, call{route: delivery.RoutePeople, query: query}, nil, &out)
	return out.Records, err
}

// Person reads somebody's signed record.
func (c *Client) Person(ctx context.Context, id identity.PublicKey) ([]byte, error) {
	var out delivery.ProfileBody
	err := c.json(ctx, call{route: delivery.RouteOnePerson, path: []string{id.String()}}, nil, &out)
	return out.Record, err
}

// Listings finds public rooms; "" finds all.
func (c *Client) Listings(ctx context.Context, query string) ([]delivery.ListingBody, error) {
	var out delivery.ListingsResponse
	err := c.json(ctx, call{route: delivery.RouteListings, query: map[string]string{"query": query}}, nil, &out)
	return out.Listings, err
}

// List makes a room public; Unlist takes that back; Ask asks its members to add
// this identity.
func (c *Client) List(ctx context.Context, l delivery.ListingBody) error {
	return c.json(ctx, call{route: delivery.RouteList, path: []string{l.Room.String()}}, l, nil)
}

// Unlist takes a room out of the public listing.
func (c *Client) Unlist(ctx context.Context, room delivery.RoomID) error {
	return c.json(ctx, call{route: delivery.RouteUnlist, path: []string{room.String()}}, nil, nil)
}

// Ask asks a listed room's members to be added.
func (c *Client) Ask(ctx context.Context, room delivery.RoomID, note string) error {
	return c.json(ctx, call{route: delivery.RouteAsk, path: []string{room.String()}}, delivery.AskRequest{Note: note}, nil)
}
