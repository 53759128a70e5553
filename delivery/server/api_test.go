package server

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

func unmarshal(raw []byte, v any) error { return json.Unmarshal(raw, v) }

func openDocument(t *testing.T, in *instance) document {
	t.Helper()
	resp, err := http.Get(in.http.URL + "/openapi.json")
	check(t, err)
	defer func() { check(t, resp.Body.Close()) }()
	var doc document
	check(t, json.NewDecoder(resp.Body).Decode(&doc))
	return doc
}

func TestOpenAPIDescribesEveryRoute(t *testing.T) {
	in := newWorld(t).start()
	doc := openDocument(t, in)
	served := map[string]bool{}
	for _, rt := range in.table() {
		method, target, _ := strings.Cut(rt.pattern, " ")
		op, ok := doc.Paths[target][strings.ToLower(method)]
		if !ok {
			t.Errorf("%s is served and not described", rt.pattern)
			continue
		}
		served[target+" "+strings.ToLower(method)] = true
		if open := len(op.Security) == 0; open != (rt.access == anybody) {
			t.Errorf("%s: described as open: %v", rt.pattern, open)
		}
		if (op.RequestBody != nil) != (rt.limit > 0) {
			t.Errorf("%s: described with a body: %v, bound %d", rt.pattern, op.RequestBody != nil, rt.limit)
		}
	}
	for target, methods := range doc.Paths {
		for method := range methods {
			if !served[target+" "+method] {
				t.Errorf("%s %s is described and not served", method, target)
			}
		}
	}
	if len(operations) != len(in.table()) {
		t.Errorf("%d operations for %d routes", len(operations), len(in.table()))
	}
}

// TestOpenAPIHoldsForAnswers compares real answers with their schemas.
func TestOpenAPIHoldsForAnswers(t *testing.T) {
	in := newWorld(t).start()
	doc := openDocument(t, in)
	d := in.enrolled("ada")
	for _, route := range []string{
		delivery.RouteDevices, delivery.RouteSnapshot, delivery.RouteArchive, delivery.RouteWrapped, delivery.RouteKeyCount,
		delivery.RouteRooms, delivery.RouteMailbox, delivery.RouteListings, delivery.RouteInfo, delivery.RouteLive, delivery.RouteReady, delivery.RouteHealth,
	} {
		raw, err := d.call(route, nil, "")
		check(t, err)
		var answer any
		check(t, json.Unmarshal(raw, &answer))
		method, target, _ := strings.Cut(route, " ")
		schema := doc.Paths[target][strings.ToLower(method)].Responses["200"].Content["application/json"].Schema
		for _, fault := range conforms(doc, schema, answer, route) {
			t.Error(fault)
		}
	}
	// A refusal is a Problem.
	req, err := http.NewRequest("GET", in.http.URL+"/v1/devices", nil)
	check(t, err)
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	raw, err := io.ReadAll(resp.Body)
	check(t, err)
	check(t, resp.Body.Close())
	var problem any
	check(t, json.Unmarshal(raw, &problem))
	for _, fault := range conforms(doc, map[string]any{"$ref": "#/components/schemas/Problem"}, problem, "problem") {
		t.Error(fault)
	}
}

// conforms checks a value against the small part of JSON Schema that the
// document uses.
func conforms(doc document, schema map[string]any, v any, at string) []string {
	if ref, ok := schema["$ref"].(string); ok {
		return conforms(doc, doc.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")], v, at)
	}
	fault := func(want string) []string { return []string{at + ": not " + want} }
	switch schema["type"] {
	case "object":
		object, ok := v.(map[string]any)
		if !ok {
			return fault("an object")
		}
		var out []string
		properties, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, has := object[name.(string)]; !has {
				out = append(out, at+": "+name.(string)+" is missing")
			}
		}
		for name, field := range object {
			p, known := properties[name].(map[string]any)
			if !known {
				if schema["additionalProperties"] == nil {
					out = append(out, at+": "+name+" is not described")
				}
				continue
			}
			out = append(out, conforms(doc, p, field, at+"."+name)...)
		}
		return out
	case "array":
		list, ok := v.([]any)
		if !ok {
			return fault("an array")
		}
		var out []string
		for _, item := range list {
			out = append(out, conforms(doc, schema["items"].(map[string]any), item, at+"[]")...)
		}
		return out
	case "string":
		if _, ok := v.(string); !ok && v != nil {
			return fault("a string")
		}
	case "integer":
		if _, ok := v.(float64); !ok {
			return fault("a number")
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return fault("a boolean")
		}
	}
	return nil
}

// TestBadBodies: garbage, truncation and size on every route that takes a body.
func TestBadBodies(t *testing.T) {
	in := newWorld(t).start()
	d := in.enrolled("ada")
	args := func(pattern string) []string {
		var out []string
		for _, m := range pathParameter.FindAllStringSubmatch(pattern, -1) {
			out = append(out, map[string]string{
				"room": newRoomID(t).String(), "blob": delivery.BlobID{1}.String(), "device": d.id().String(),
				"identity": d.owner.id.String(), "name": "n", "generation": "1",
			}[m[1]])
		}
		return out
	}
	for _, rt := range in.table() {
		if rt.limit == none || rt.access == streamed || rt.pattern == delivery.RouteArchiveSet || rt.pattern == delivery.RouteWrap {
			continue
		}
		for name, body := range map[string][]byte{
			"nothing": nil, "garbage": []byte("\xff\xfe{{"), "an array": []byte("[]"), "an unknown field": []byte(`{"nobody_knows":1}`),
			"two objects": []byte("{}{}"), "a huge length": {0xbf, 0xff, 0xff, 0xff, 1}, "a string": []byte(`"x"`),
		} {
			_, err := d.call(rt.pattern, body, "", args(rt.pattern)...)
			switch code := delivery.CodeOf(err); code {
			case delivery.CodeBadRequest, delivery.CodeSlowDown:
			default:
				t.Errorf("%s with %s: %v", rt.pattern, name, err)
			}
		}
		if rt.limit < 2<<20 {
			_, err := d.call(rt.pattern, bytes.Repeat([]byte(" "), int(rt.limit)+1), "", args(rt.pattern)...)
			if delivery.CodeOf(err) != delivery.CodeTooLarge {
				t.Errorf("%s with a body over its bound: %v", rt.pattern, err)
			}
		}
	}
}

func newRoomID(t testing.TB) delivery.RoomID {
	t.Helper()
	id, err := delivery.NewRoomID(testHome, bytes.NewReader(bytes.Repeat([]byte{7}, 16)))
	check(t, err)
	return id
}

func TestUnknownRoutesAreProblems(t *testing.T) {
	in := newWorld(t).start()
	d := in.enrolled("ada")
	_, err := d.call("GET /v1/nothing", nil, "")
	wantCode(t, err, delivery.CodeNotFound)
}

// TestNothingIsNamed: refusals and log lines name no person, device, room or token.
func TestRefusalsNameNobody(t *testing.T) {
	in := newWorld(t).start()
	d := in.enrolled("ada")
	room := newRoomID(t)
	for _, call := range []func() error{
		func() error { return d.json(delivery.RouteRoom, nil, nil, room.String()) },
		func() error {
			return d.json(delivery.RouteEnrol, delivery.EnrolRequest{Credential: append(d.cred.Bytes()[:identity.CredentialSize-64], make([]byte, 64)...)}, nil)
		},
		func() error { return d.json(delivery.RouteOnePerson, nil, nil, newPerson("bob").id.String()) },
	} {
		err := call()
		if err == nil {
			t.Fatal("not refused")
		}
		for _, secret := range []string{d.token, d.id().String(), d.owner.id.String(), room.String()} {
			if strings.Contains(err.Error()+in.logs.String(), secret) {
				t.Errorf("%v names somebody", err)
			}
		}
	}
}
