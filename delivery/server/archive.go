package server

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// What people store sealed for themselves: the account's snapshot under the
// identity, pieces of history, and account keys wrapped to each device.

const archivePage = 500

// fresh refuses what is sealed under an archive key that a revoked device of the
// account holds: each revocation raises the generation by one.
func (s *Server) fresh(c *call, sealed []byte) error {
	g, err := delivery.SealedGeneration(sealed)
	if err != nil {
		return bad("no generation of the archive key stands before what is sealed")
	}
	revoked, err := s.store.Revocations(c, c.who.Device.Identity)
	if err != nil {
		return err
	}
	if g <= uint64(len(revoked)) {
		return delivery.Refuse(delivery.CodeConflict, "it is sealed under an archive key of before a revocation: read the account's devices and keys again")
	}
	return nil
}

func (s *Server) snapshot(c *call) error {
	version, sealed, err := s.store.Snapshot(c, c.who.Device.Identity)
	if err != nil {
		return err
	}
	return c.json(delivery.SnapshotBody{Version: version, Sealed: sealed})
}

func (s *Server) putSnapshot(c *call) error {
	var req delivery.SnapshotBody
	if err := c.readJSON(&req); err != nil {
		return err
	}
	if most := s.Limits.Archive.Snapshot; len(req.Sealed) > most {
		return delivery.Refuse(delivery.CodeTooLarge, fmt.Sprintf("a snapshot has at most %d bytes here", most))
	}
	if err := s.spend(c, "archive", c.who.Device.Identity.String(), 1); err != nil {
		return err
	}
	if err := s.fresh(c, req.Sealed); err != nil {
		return err
	}
	version, before, err := s.store.Snapshot(c, c.who.Device.Identity)
	if err != nil {
		return err
	}
	// mutants: equivalent: the store compares it again; this ties what follows to it.
	if version != req.Version {
		return delivery.ErrChanged
	}
	// A service that was restored may have lost the revocation and not the snapshot.
	if was, err := delivery.SealedGeneration(before); err == nil {
		if now, _ := delivery.SealedGeneration(req.Sealed); now < was {
			return delivery.Refuse(delivery.CodeConflict, "the snapshot that stands here is of a later archive key")
		}
	}
	if err := s.store.PutSnapshot(c, c.who.Device.Identity, req.Version, req.Sealed); err != nil {
		return err
	}
	return c.nothing()
}

func segmentName(c *call) (string, error) {
	name := c.r.PathValue("name")
	if len(name) > delivery.MaxSegmentName { // an empty one is another route's
		return "", bad("a segment's name has 1 to 128 bytes")
	}
	return name, nil
}

func (s *Server) putArchive(c *call) error {
	name, err := segmentName(c)
	if err != nil {
		return err
	}
	var replaces [32]byte
	if text := c.r.URL.Query().Get("replaces"); text != "" {
		if _, err := hex.Decode(replaces[:], []byte(text[:min(len(text), 2*len(replaces))])); err != nil || len(text) != 2*len(replaces) {
			return bad("replaces is the SHA-256 of a segment in hex")
		}
	}
	if err := s.spend(c, "archive", c.who.Device.Identity.String(), 1); err != nil {
		return err
	}
	if err := s.fresh(c, c.body); err != nil {
		return err
	}
	most := s.Limits.Archive
	err = s.store.PutArchive(c, delivery.ArchiveSegment{
		Identity: c.who.Device.Identity, Name: name, Size: len(c.body), CreatedMS: s.nowMS(), Sealed: c.body,
	}, replaces, delivery.ArchiveBound{Segments: most.Segments, Bytes: most.Bytes})
	if errors.Is(err, delivery.ErrLimit) {
		return delivery.Refuse(delivery.CodeTooLarge, fmt.Sprintf("the archive of one account has at most %d segments and %d bytes here", most.Segments, most.Bytes))
	}
	if err != nil {
		return err
	}
	return c.nothing()
}

func (s *Server) listArchive(c *call) error {
	list, err := s.store.Archive(c, c.who.Device.Identity, c.r.URL.Query().Get("after"), archivePage+1)
	if err != nil {
		return err
	}
	out := delivery.ArchiveResponse{Segments: []delivery.SegmentView{}, More: len(list) > archivePage}
	for _, a := range list[:min(archivePage, len(list))] {
		out.Segments = append(out.Segments, delivery.SegmentView{Name: a.Name, Size: a.Size, CreatedMS: a.CreatedMS})
	}
	return c.json(out)
}

func (s *Server) archiveSegment(c *call) error {
	name, err := segmentName(c)
	if err != nil {
		return err
	}
	a, err := s.store.ArchiveSegment(c, c.who.Device.Identity, name)
	if err != nil {
		return err
	}
	return c.send("application/octet-stream", a.Sealed)
}

func (s *Server) wrappedKeys(c *call) error {
	list, err := s.store.WrappedKeys(c, c.device())
	if err != nil {
		return err
	}
	out := delivery.WrappedKeysResponse{Keys: []delivery.WrappedKeyView{}}
	for _, k := range list {
		out.Keys = append(out.Keys, delivery.WrappedKeyView{Generation: k.Generation, Wrapped: k.Wrapped})
	}
	return c.json(out)
}

// putWrappedKey keeps a key for a device of the caller's own identity.
func (s *Server) putWrappedKey(c *call) error {
	device, err := identity.ParseDeviceID(c.r.PathValue("device"))
	if err != nil {
		return bad("the path names no device")
	}
	generation, err := strconv.ParseUint(c.r.PathValue("generation"), 10, 62)
	if err != nil || generation == 0 {
		return bad("the path names no generation")
	}
	if len(c.body) == 0 {
		return bad("an empty key")
	}
	d, err := s.store.Device(c, device)
	if err != nil {
		return err
	}
	if d.Identity != c.who.Device.Identity {
		return delivery.ErrNotFound
	}
	if err := s.spend(c, "archive", c.who.Device.Identity.String(), 1); err != nil {
		return err
	}
	err = s.store.PutWrappedKey(c, delivery.WrappedKey{Device: device, Generation: generation, Wrapped: c.body}, s.Limits.Archive.Keys)
	if errors.Is(err, delivery.ErrLimit) {
		return delivery.Refuse(delivery.CodeTooLarge, fmt.Sprintf("at most %d keys are kept wrapped for one device here", s.Limits.Archive.Keys))
	}
	if err != nil {
		return err
	}
	return c.nothing()
}
