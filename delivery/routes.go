package delivery

// The routes, in net/http.ServeMux form. OpenAPI, server and client are held to
// this list by a test. Those without a session say so.
const (
	RouteEnrol      = "POST /v1/devices" // no session
	RouteDevices    = "GET /v1/devices"
	RoutePerson     = "GET /v1/identities/{identity}/devices" // devices and revocations of anybody
	RouteChallenge  = "POST /v1/challenges"                   // no session
	RouteLogin      = "POST /v1/sessions"                     // no session
	RouteLogout     = "DELETE /v1/sessions"
	RouteRevoke     = "POST /v1/revocations" // no session
	RouteSnapshot   = "GET /v1/snapshot"
	RouteSetSnap    = "PUT /v1/snapshot"
	RouteArchiveSet = "PUT /v1/archive/{name}" // ?replaces=SHA-256 in hex; body: sealed bytes
	RouteArchive    = "GET /v1/archive"
	RouteArchiveGet = "GET /v1/archive/{name}"
	RouteWrapped    = "GET /v1/wrapped-keys"
	RouteWrap       = "PUT /v1/wrapped-keys/{device}/{generation}" // body: wrapped bytes

	RoutePublish  = "POST /v1/keypackages"
	RouteKeyCount = "GET /v1/keypackages"
	RouteClaim    = "POST /v1/keypackages/claim"

	RouteRooms      = "GET /v1/rooms"
	RouteCreateRoom = "POST /v1/rooms"                 // body: CreateRoomRequest, binary
	RouteRoom       = "GET /v1/rooms/{room}"           //
	RouteAppend     = "POST /v1/rooms/{room}/append"   // body: AppendRequest, binary
	RouteLog        = "GET /v1/rooms/{room}/log"       // ?after=&upto=&limit= → LogPage, binary
	RouteGroupInfo  = "GET /v1/rooms/{room}/groupinfo" // ?epoch= → MLSMessage with a GroupInfo, without tree
	RouteTree       = "GET /v1/rooms/{room}/tree"      // ?epoch= → ratchet_tree, RFC 9420 §12.4.3.3
	RouteIdle       = "GET /v1/rooms/{room}/idle"      // devices away for IdleAfter → IdleResponse
	RouteHeld       = "GET /v1/rooms/{room}/proposals" // the held proposals' entries → LogPage, binary
	RouteReport     = "POST /v1/rooms/{room}/report"
	RouteSucceed    = "POST /v1/rooms/{room}/succeed"
	RouteHeal       = "POST /v1/rooms/{room}/heal" // body: HealRequest, binary

	RouteMailbox = "GET /v1/mailbox" // ?after=&limit=
	RouteAck     = "POST /v1/mailbox/ack"

	RouteSetProfile = "PUT /v1/profile"
	RoutePeople     = "GET /v1/people" // ?username= | ?prefix=
	RouteOnePerson  = "GET /v1/people/{identity}"
	RouteListings   = "GET /v1/listings"
	RouteList       = "PUT /v1/listings/{room}"
	RouteUnlist     = "DELETE /v1/listings/{room}"
	RouteAsk        = "POST /v1/listings/{room}/ask"

	RouteUpload    = "POST /v1/blobs"
	RouteUploadTo  = "PATCH /v1/blobs/{blob}"     // Upload-Offset header, body: bytes
	RouteBlobState = "GET /v1/blobs/{blob}/state" //
	RouteBlob      = "GET /v1/blobs/{blob}"       // Range

	RouteConnect = "GET /v1/connect" // WebSocket; authenticates in its first frame
	RouteInfo    = "GET /v1/info"    // no session
	RouteLive    = "GET /health/live"
	RouteReady   = "GET /health/ready"
	RouteHealth  = "GET /health"
	RouteOpenAPI = "GET /openapi.json"
)

// Headers.
const (
	HeaderEnvelope = "x-chat-relay"  // a signed request in place of a bearer token
	HeaderWork     = "x-chat-work"   // hex nonce that answers CodeSolveWork
	HeaderOffset   = "Upload-Offset" // decimal, first byte of a PATCH body
	BinaryType     = "application/vnd.compax+mls"
	// MsgServiceTime carries the service's clock in Unix milliseconds on every answer.
	HeaderTime = "x-chat-time"
)
