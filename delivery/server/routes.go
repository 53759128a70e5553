package server

import (
	"net/http"

	"github.com/askucher/compax-core/delivery"
)

// Bounds of bodies, in bytes.
const (
	none    = 0
	tiny    = 64 << 10
	jsonMax = delivery.MaxJSON
	// maxAppend is an AppendRequest with everything at its largest.
	maxAppend = delivery.MaxEntry + delivery.MaxWelcome + delivery.MaxGroupInfo + delivery.MaxAppendBlobs*16 + 64
	maxCreate = delivery.MaxGroupInfo + delivery.MaxTree + 64
	maxHeal   = 32 << 20
)

// table is everything that is served: what, to whom, how large, by which
// method. The methods stand in the files that the groups name.
func (s *Server) table() []route {
	return []route{
		// devices.go, sessions.go, revocation.go
		{delivery.RouteEnrol, anybody, tiny, (*Server).enrol},
		{delivery.RouteDevices, session, none, (*Server).ownDevices},
		{delivery.RoutePerson, session, none, (*Server).personsDevices},
		{delivery.RouteChallenge, anybody, tiny, (*Server).challenge},
		{delivery.RouteLogin, anybody, tiny, (*Server).login},
		{delivery.RouteLogout, session, none, (*Server).logout},
		{delivery.RouteRevoke, anybody, tiny, (*Server).revoke},
		// archive.go
		{delivery.RouteSnapshot, session, none, (*Server).snapshot},
		{delivery.RouteSetSnap, session, jsonMax, (*Server).putSnapshot},
		{delivery.RouteArchiveSet, session, delivery.MaxSegment, (*Server).putArchive},
		{delivery.RouteArchive, session, none, (*Server).listArchive},
		{delivery.RouteArchiveGet, session, none, (*Server).archiveSegment},
		{delivery.RouteWrapped, session, none, (*Server).wrappedKeys},
		{delivery.RouteWrap, session, delivery.MaxWrapped, (*Server).putWrappedKey},
		// keypackages.go
		{delivery.RoutePublish, session, jsonMax, (*Server).publish},
		{delivery.RouteKeyCount, session, none, (*Server).countPackages},
		{delivery.RouteClaim, session, tiny, (*Server).claim},
		// create.go, rooms.go, append.go, log.go, report.go, heal.go
		{delivery.RouteRooms, session, none, (*Server).listRooms},
		{delivery.RouteCreateRoom, session, maxCreate, (*Server).createRoom},
		{delivery.RouteRoom, session, none, (*Server).roomHead},
		{delivery.RouteAppend, session, maxAppend, (*Server).append},
		{delivery.RouteLog, session, none, (*Server).readLog},
		{delivery.RouteGroupInfo, session, none, (*Server).groupInfo},
		{delivery.RouteTree, session, none, (*Server).ratchetTree},
		{delivery.RouteIdle, session, none, (*Server).idleDevices},
		{delivery.RouteHeld, session, none, (*Server).heldProposals},
		{delivery.RouteReport, session, tiny, (*Server).report},
		{delivery.RouteSucceed, session, tiny, (*Server).succeed},
		{delivery.RouteHeal, session, maxHeal, (*Server).heal},
		// mailbox.go
		{delivery.RouteMailbox, session, none, (*Server).mailbox},
		{delivery.RouteAck, session, jsonMax, (*Server).ackMail},
		// directory.go, listings.go
		{delivery.RouteSetProfile, session, tiny, (*Server).putProfile},
		{delivery.RoutePeople, session, none, (*Server).people},
		{delivery.RouteOnePerson, session, none, (*Server).person},
		{delivery.RouteListings, session, none, (*Server).listings},
		{delivery.RouteList, session, tiny, (*Server).list},
		{delivery.RouteUnlist, session, none, (*Server).unlist},
		{delivery.RouteAsk, session, tiny, (*Server).ask},
		// blobs.go
		{delivery.RouteUpload, session, tiny, (*Server).beginBlob},
		{delivery.RouteUploadTo, streamed, 1 << 50, (*Server).uploadBlob},
		{delivery.RouteBlobState, session, none, (*Server).blobState},
		{delivery.RouteBlob, session, none, (*Server).readBlob},
		// socket.go, info.go
		{delivery.RouteConnect, anybody, none, (*Server).connect},
		{delivery.RouteInfo, anybody, none, (*Server).info},
		{delivery.RouteLive, anybody, none, (*Server).live},
		{delivery.RouteReady, anybody, none, (*Server).ready},
		{delivery.RouteHealth, anybody, none, (*Server).health},
		{delivery.RouteOpenAPI, anybody, none, (*Server).openAPIDocument},
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range s.table() {
		mux.Handle(rt.pattern, s.handle(rt))
	}
	// Whoever asks for something else gets a problem, not a page.
	unknown := s.handle(route{"unknown", anybody, none, func(*Server, *call) error {
		return delivery.Refuse(delivery.CodeNotFound, "no such route")
	}})
	mux.Handle("/", unknown)
	return guard(s.Patience, mux, unknown)
}
