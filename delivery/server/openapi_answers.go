package server

import (
	"net/http"

	"github.com/askucher/compax-core/delivery"
)

// What the OpenAPI document says of statuses and headers. A refusal is a problem
// document with the status of its code on every route ("default"); what else a route
// answers stands here. The tests of this package hold every answer that they get to it.

// answer is one status of a route.
type answer struct {
	what    string
	bodies  []any    // one of them; none: no body
	headers []string // beside x-chat-time, which every answer has
}

var problem = delivery.Problem{}

// header describes a header of a request or an answer.
type header struct{ what, kind string }

var headers = map[string]header{
	delivery.HeaderTime:    {"The service's clock, Unix milliseconds.", "integer"},
	delivery.HeaderWork:    {"Hex nonce that solves the work which a refusal (solve_work) asked for.", "string"},
	delivery.HeaderOffset:  {"The first byte of the body: how much has arrived.", "integer"},
	"Range":                {"Which bytes.", "string"},
	"If-Range":             {"An ETag: with another one Range does not count.", "string"},
	"If-Match":             {"An ETag.", "string"},
	"If-None-Match":        {"An ETag.", "string"},
	"Retry-After":          {"Seconds, with the codes that say to try again.", "integer"},
	"WWW-Authenticate":     {"With 401.", "string"},
	"Accept-Ranges":        {"bytes", "string"},
	"Content-Range":        {"Which bytes of how many.", "string"},
	"ETag":                 {"Of the blob, which never changes.", "string"},
	"Cache-Control":        {"It may be kept for good by who may read it.", "string"},
	"Sec-WebSocket-Accept": {"RFC 6455.", "string"},
	"Upgrade":              {"websocket", "string"},
}

// requestHeaders are those that a route reads, beside who asks.
var requestHeaders = map[string][]string{
	delivery.RouteAppend:   {delivery.HeaderWork},
	delivery.RouteUploadTo: {delivery.HeaderOffset},
	delivery.RouteBlob:     {"Range", "If-Range", "If-Match", "If-None-Match"},
}

// furtherAnswers are answers of single routes; op.response is the one with 200.
var furtherAnswers = map[string]map[int]answer{
	delivery.RouteReady:  {http.StatusServiceUnavailable: {"it can take no work", []any{delivery.Health{}, problem}, nil}},
	delivery.RouteHealth: {http.StatusServiceUnavailable: {"it can take no work", []any{delivery.Health{}, problem}, nil}},
	delivery.RouteBlob: {
		http.StatusOK:                           {"the blob", []any{octets}, []string{"Accept-Ranges", "ETag", "Cache-Control"}},
		http.StatusPartialContent:               {"the bytes of Range", []any{octets, rawBody{"multipart/byteranges"}}, []string{"Accept-Ranges", "Content-Range", "ETag", "Cache-Control"}},
		http.StatusNotModified:                  {"the blob is as If-None-Match says", nil, []string{"ETag", "Cache-Control"}},
		http.StatusPreconditionFailed:           {"the blob is not as If-Match says; no byte of it", []any{octets}, []string{"ETag", "Cache-Control"}},
		http.StatusRequestedRangeNotSatisfiable: {"no byte of Range is in the blob", []any{rawBody{"text/plain"}}, []string{"Content-Range"}},
	},
	delivery.RouteConnect: {
		http.StatusSwitchingProtocols: {"the socket", nil, []string{"Upgrade", "Sec-WebSocket-Accept"}},
		http.StatusUpgradeRequired:    {"no socket was asked for", []any{rawBody{"text/plain"}}, []string{"Upgrade"}},
	},
}

// answers are what a route answers beside refusals, by status.
func (op operation) answers(pattern string) map[int]answer {
	out := map[int]answer{}
	switch {
	case op.response != nil:
		out[http.StatusOK] = answer{"the answer", []any{op.response}, nil}
	case pattern != delivery.RouteConnect:
		out[http.StatusNoContent] = answer{"done", nil, nil}
	}
	for status, a := range furtherAnswers[pattern] {
		out[status] = a
	}
	return out
}

func (a answer) document(schemas map[string]any) map[string]any {
	described := map[string]any{}
	for _, name := range append([]string{delivery.HeaderTime}, a.headers...) {
		described[name] = map[string]any{"description": headers[name].what, "schema": map[string]any{"type": headers[name].kind}}
	}
	out := map[string]any{"description": a.what, "headers": described}
	if len(a.bodies) > 0 {
		out["content"] = content(schemas, a.bodies...)
	}
	return out
}
