package server

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// operation describes a route in the OpenAPI document: what it is for, its
// query parameters, and the Go types of its bodies, whose JSON form becomes the
// schema. rawBody stands for bytes that are no JSON.
type operation struct {
	summary  string
	query    []string
	request  any
	response any // nil: 204
}

type rawBody struct{ media string }

var (
	mlsBytes   = rawBody{delivery.BinaryType}
	octets     = rawBody{"application/octet-stream"}
	operations = map[string]operation{
		delivery.RouteEnrol:      {"Make a device known that its identity attests, unless that has as many as the service keeps of one.", nil, delivery.EnrolRequest{}, nil},
		delivery.RouteDevices:    {"The own devices and revocations.", nil, nil, delivery.DevicesResponse{}},
		delivery.RoutePerson:     {"Anybody's devices and revocations.", nil, nil, delivery.DevicesResponse{}},
		delivery.RouteChallenge:  {"A login challenge, good for two minutes and one answer.", nil, delivery.ChallengeRequest{}, delivery.ChallengeResponse{}},
		delivery.RouteLogin:      {"Log in with a signed challenge. The device's other sessions end.", nil, delivery.SessionRequest{}, delivery.SessionResponse{}},
		delivery.RouteLogout:     {"End the session.", nil, nil, nil},
		delivery.RouteRevoke:     {"Revoke a device, signed by its identity. One that is enrolled always, another while the identity has room for it.", nil, delivery.RevokeRequest{}, nil},
		delivery.RouteSnapshot:   {"The account's sealed state.", nil, nil, delivery.SnapshotBody{}},
		delivery.RouteSetSnap:    {"Replace the account's sealed state, by version.", nil, delivery.SnapshotBody{}, nil},
		delivery.RouteArchiveSet: {"Put a sealed piece of history, in the place of one whose SHA-256 is given.", []string{"replaces"}, octets, nil},
		delivery.RouteArchive:    {"List the sealed pieces of history.", []string{"after"}, nil, delivery.ArchiveResponse{}},
		delivery.RouteArchiveGet: {"Read a sealed piece of history.", nil, nil, octets},
		delivery.RouteWrapped:    {"Account keys wrapped to this device.", nil, nil, delivery.WrappedKeysResponse{}},
		delivery.RouteWrap:       {"Wrap an account key to a device of the same identity.", nil, octets, nil},
		delivery.RoutePublish:    {"Publish key packages.", nil, delivery.PublishRequest{}, delivery.KeyPackageCount{}},
		delivery.RouteKeyCount:   {"How many key packages are left.", []string{"suite"}, nil, delivery.KeyPackageCount{}},
		delivery.RouteClaim:      {"Take one key package of each device of an identity.", nil, delivery.ClaimRequest{}, delivery.ClaimResponse{}},
		delivery.RouteRooms:      {"Rooms of this device and of its identity.", nil, nil, delivery.RoomsResponse{}},
		delivery.RouteCreateRoom: {"Make a room: a CreateRoomRequest.", nil, mlsBytes, delivery.RoomHead{}},
		delivery.RouteRoom:       {"Epoch, seqs, status and held proposals.", nil, nil, delivery.RoomHead{}},
		delivery.RouteAppend:     {"Add one entry: an AppendRequest.", nil, mlsBytes, delivery.Accepted{}},
		delivery.RouteLog:        {"Entries after a seq: a LogPage.", []string{"after", "upto", "limit"}, nil, mlsBytes},
		delivery.RouteGroupInfo:  {"A GroupInfo without the tree, an MLSMessage.", []string{"epoch"}, nil, mlsBytes},
		delivery.RouteTree:       {"A ratchet tree, RFC 9420 section 12.4.3.3.", []string{"epoch"}, nil, mlsBytes},
		delivery.RouteIdle:       {"Devices of the room that were away for 90 days, to its members.", nil, nil, delivery.IdleResponse{}},
		delivery.RouteHeld:       {"The held proposals' entries: a LogPage.", nil, nil, mlsBytes},
		delivery.RouteReport:     {"Report a commit that cannot be processed.", nil, delivery.ReportRequest{}, nil},
		delivery.RouteSucceed:    {"Close the room for its successor.", nil, delivery.SucceedRequest{}, nil},
		delivery.RouteHeal:       {"Offer kept entries after a restore: a HealRequest.", nil, mlsBytes, delivery.HealResponse{}},
		delivery.RouteMailbox:    {"Welcomes and notices.", []string{"after", "limit"}, nil, delivery.MailResponse{}},
		delivery.RouteAck:        {"Acknowledge mailbox items.", nil, delivery.AckRequest{}, nil},
		delivery.RouteSetProfile: {"Set the own signed username record.", nil, delivery.ProfileBody{}, nil},
		delivery.RoutePeople:     {"Find people by username or prefix.", []string{"username", "prefix"}, nil, delivery.ProfilesResponse{}},
		delivery.RouteOnePerson:  {"One person's record.", nil, nil, delivery.ProfileBody{}},
		delivery.RouteListings:   {"Public rooms.", []string{"query", "offset"}, nil, delivery.ListingsResponse{}},
		delivery.RouteList:       {"Make a room public.", nil, delivery.ListingBody{}, nil},
		delivery.RouteUnlist:     {"Take a listing back.", nil, nil, nil},
		delivery.RouteAsk:        {"Ask to be added to a listed room.", nil, delivery.AskRequest{}, nil},
		delivery.RouteUpload:     {"Begin an upload.", nil, delivery.BlobRequest{}, delivery.BlobView{}},
		delivery.RouteUploadTo:   {"Upload bytes from Upload-Offset on.", nil, octets, delivery.BlobView{}},
		delivery.RouteBlobState:  {"How much of an upload has arrived.", nil, nil, delivery.BlobView{}},
		delivery.RouteBlob:       {"Read a blob, by Range.", nil, nil, octets},
		delivery.RouteConnect:    {"The WebSocket; it authenticates in its first frame.", nil, nil, nil},
		delivery.RouteInfo:       {"What the service offers now.", nil, nil, delivery.Info{}},
		delivery.RouteLive:       {"The process answers.", nil, nil, delivery.Health{}},
		delivery.RouteReady:      {"It can take work.", nil, nil, delivery.Health{}},
		delivery.RouteHealth:     {"Both, with parts.", nil, nil, delivery.Health{}},
		delivery.RouteOpenAPI:    {"This document.", nil, nil, map[string]any{}},
	}
)

var pathParameter = regexp.MustCompile(`\{([a-z]+)\}`)

// openAPI writes the document from the table of routes and the operations
// above; a route without an operation is an error.
func openAPI(name, version string) ([]byte, error) {
	schemas := map[string]any{}
	paths := map[string]map[string]any{}
	for _, rt := range (&Server{}).table() {
		op, known := operations[rt.pattern]
		if !known {
			return nil, fmt.Errorf("route %s is not described", rt.pattern)
		}
		method, path, _ := strings.Cut(rt.pattern, " ")
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][strings.ToLower(method)] = op.document(rt, path, schemas)
	}
	return json.MarshalIndent(map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": name + " delivery service", "version": version, "license": map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"paths":   paths,
		"components": map[string]any{
			"schemas": schemas,
			"securitySchemes": map[string]any{
				"session":  map[string]any{"type": "http", "scheme": "bearer"},
				"envelope": map[string]any{"type": "apiKey", "in": "header", "name": delivery.HeaderEnvelope},
			},
		},
	}, "", " ")
}

func (op operation) document(rt route, path string, schemas map[string]any) map[string]any {
	doc := map[string]any{"summary": op.summary, "operationId": operationID(rt.pattern)}
	if rt.access == anybody {
		doc["security"] = []any{}
	} else {
		doc["security"] = []any{map[string]any{"session": []any{}}, map[string]any{"envelope": []any{}}}
	}
	var parameters []any
	for _, m := range pathParameter.FindAllStringSubmatch(path, -1) {
		parameters = append(parameters, map[string]any{"name": m[1], "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
	}
	for _, q := range op.query {
		parameters = append(parameters, map[string]any{"name": q, "in": "query", "schema": map[string]any{"type": "string"}})
	}
	for _, name := range requestHeaders[rt.pattern] {
		parameters = append(parameters, map[string]any{
			"name": name, "in": "header", "required": name == delivery.HeaderOffset,
			"description": headers[name].what, "schema": map[string]any{"type": headers[name].kind},
		})
	}
	if parameters != nil {
		doc["parameters"] = parameters
	}
	if op.request != nil {
		doc["requestBody"] = map[string]any{"required": true, "content": content(schemas, op.request)}
	}
	responses := map[string]any{"default": answer{"a refusal: its code says what to do", []any{problem}, []string{"Retry-After", "WWW-Authenticate"}}.document(schemas)}
	for status, a := range op.answers(rt.pattern) {
		responses[strconv.Itoa(status)] = a.document(schemas)
	}
	doc["responses"] = responses
	return doc
}

func operationID(pattern string) string {
	id := strings.NewReplacer(" ", "_", "/", "_", "{", "", "}", "", ".", "_", "-", "_").Replace(pattern)
	return strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(id, "_v1", ""), "__", "_"))
}

// content describes the forms that one body can have.
func content(schemas map[string]any, bodies ...any) map[string]any {
	out := map[string]any{}
	for _, body := range bodies {
		switch b := body.(type) {
		case rawBody:
			out[b.media] = map[string]any{"schema": map[string]any{"type": "string", "format": "binary"}}
		case delivery.Problem:
			out[delivery.ProblemType] = map[string]any{"schema": schemaOf(reflect.TypeOf(body), schemas)}
		default:
			out["application/json"] = map[string]any{"schema": schemaOf(reflect.TypeOf(body), schemas)}
		}
	}
	return out
}

var (
	hexTypes = map[reflect.Type]int{
		reflect.TypeFor[identity.PublicKey](): 64, reflect.TypeFor[identity.DeviceID](): 32, reflect.TypeFor[identity.Home](): 6, reflect.TypeFor[delivery.BlobID](): 32,
	}
	roomType     = reflect.TypeFor[delivery.RoomID]()
	durationType = reflect.TypeFor[time.Duration]()
)

// schemaOf describes the JSON form of a Go type; structs go by name.
func schemaOf(t reflect.Type, schemas map[string]any) map[string]any {
	if n, ok := hexTypes[t]; ok {
		return map[string]any{"type": "string", "pattern": fmt.Sprintf("^[0-9a-f]{%d}$", n)}
	}
	switch {
	case t == roomType:
		return map[string]any{"type": "string", "format": "uuid"}
	case t == durationType:
		return map[string]any{"type": "integer"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), schemas)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), schemas)}
	case reflect.Map:
		if t.Elem().Kind() == reflect.String {
			return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}
		}
		return map[string]any{"type": "object"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Struct:
		return structSchema(t, schemas)
	}
	return map[string]any{"type": "integer"}
}

func structSchema(t reflect.Type, schemas map[string]any) map[string]any {
	ref := map[string]any{"$ref": "#/components/schemas/" + t.Name()}
	if _, done := schemas[t.Name()]; done {
		return ref
	}
	properties, required := map[string]any{}, []string{}
	schemas[t.Name()] = nil // a type may contain itself
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		properties[name] = schemaOf(f.Type, schemas)
		if strings.Contains(options, "string") {
			properties[name] = map[string]any{"type": "string", "pattern": "^[0-9]+$"}
		}
		if !strings.Contains(options, "omitempty") {
			required = append(required, name)
		}
	}
	schemas[t.Name()] = map[string]any{"type": "object", "properties": properties, "required": required}
	return ref
}
