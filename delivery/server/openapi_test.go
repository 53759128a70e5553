package server

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/askucher/compax-core/delivery"
)

// document is the parts of the OpenAPI document that the tests read.
type document struct {
	Paths      map[string]map[string]described
	Components struct{ Schemas map[string]map[string]any }
}

type described struct {
	Security    []map[string]any
	Parameters  []struct{ Name, In string }
	RequestBody *struct{ Content map[string]any }
	Responses   map[string]struct {
		Headers map[string]any
		Content map[string]struct{ Schema map[string]any }
	}
}

var readDocument = sync.OnceValues(func() (doc document, err error) {
	raw, err := openAPI("tests", "0")
	if err == nil {
		err = json.Unmarshal(raw, &doc)
	}
	return doc, err
})

// held serves what handler serves and holds each answer to the OpenAPI document.
func (d document) held(t testing.TB, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &begun{ResponseWriter: w}
		handler.ServeHTTP(seen, r)
		if r.Pattern == "" || r.Pattern == "/" { // no route
			return
		}
		for _, fault := range d.faults(r, seen.status, seen.header) {
			t.Errorf("%s answers %d: %s", r.Pattern, seen.status, fault)
		}
	})
}

// begun remembers how an answer began.
type begun struct {
	http.ResponseWriter
	status int
	header http.Header
}

func (a *begun) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *begun) WriteHeader(status int) {
	if a.status == 0 {
		a.status, a.header = status, a.Header().Clone()
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *begun) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status, a.header = http.StatusOK, a.Header().Clone()
	}
	return a.ResponseWriter.Write(p)
}

// ofEveryAnswer are headers that HTTP itself knows and no document names.
var ofEveryAnswer = []string{"Content-Type", "Content-Length", "Connection", "Date", "X-Content-Type-Options"}

// faults are how an answer differs from its description.
func (d document) faults(r *http.Request, status int, header http.Header) (out []string) {
	method, target, _ := strings.Cut(r.Pattern, " ")
	op := d.Paths[target][strings.ToLower(method)]
	for name := range r.URL.Query() {
		if !slices.ContainsFunc(op.Parameters, func(p struct{ Name, In string }) bool { return p.In == "query" && p.Name == name }) {
			out = append(out, "the query parameter "+name+" is not described")
		}
	}
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil && header.Get("Content-Type") != "" {
		out = append(out, err.Error())
	}
	answer, named := op.Responses[strconv.Itoa(status)]
	if media == delivery.ProblemType {
		refusals := map[int]bool{}
		for _, s := range delivery.Codes() {
			refusals[s] = true
		}
		if !refusals[status] {
			out = append(out, "no code has this status")
		}
		answer, named = op.Responses["default"], true
	}
	if !named {
		return append(out, "the status is not described")
	}
	if _, known := answer.Content[media]; media != "" && !known {
		out = append(out, "the type "+media+" is not described")
	}
	for name := range header {
		known := slices.Contains(ofEveryAnswer, name)
		for n := range answer.Headers {
			known = known || http.CanonicalHeaderKey(n) == name
		}
		if !known {
			out = append(out, "the header "+name+" is not described")
		}
	}
	if header.Get(delivery.HeaderTime) == "" {
		out = append(out, "it does not carry "+delivery.HeaderTime)
	}
	return out
}

// TestOpenAPIDescribesTheBlobAnswers: each described status of a blob is given, with
// the headers that stand there, and what is not described is found out.
func TestOpenAPIDescribesTheBlobAnswers(t *testing.T) {
	in := newWorld(t).start()
	ada := in.enrolled("ada")
	id := ada.blob(t, []byte("0123456789"))
	doc, err := readDocument()
	check(t, err)
	_, target := path(delivery.RouteBlob, id.String())
	tag := `"` + id.String() + `"`
	given := map[string]bool{"default": true}
	op := doc.Paths["/v1/blobs/{blob}"]["get"]
	for _, ask := range []struct {
		header, value string
		status        int
	}{
		{"", "", 200},
		{"Range", "bytes=2-4", 206},
		{"Range", "bytes=0-1,4-5", 206},
		{"Range", "bytes=20-", 416},
		{"If-None-Match", tag, 304},
		{"If-Match", `"another"`, 412},
	} {
		req, err := http.NewRequest("GET", in.http.URL+target, nil)
		check(t, err)
		req.Header.Set("Authorization", "Bearer "+ada.token)
		if ask.header != "" {
			req.Header.Set(ask.header, ask.value)
			if !slices.ContainsFunc(op.Parameters, func(p struct{ Name, In string }) bool { return p.In == "header" && p.Name == ask.header }) {
				t.Errorf("the header %s of a request is not described", ask.header)
			}
		}
		resp, err := http.DefaultClient.Do(req)
		check(t, err)
		_, err = io.ReadAll(resp.Body)
		check(t, err)
		check(t, resp.Body.Close())
		if resp.StatusCode != ask.status {
			t.Errorf("%s %s: %d", ask.header, ask.value, resp.StatusCode)
		}
		status := strconv.Itoa(resp.StatusCode)
		given[status] = true
		for name := range op.Responses[status].Headers {
			if name != "Content-Range" && resp.Header.Get(name) == "" {
				t.Errorf("%d lacks the header %s", resp.StatusCode, name)
			}
		}
		resp.Header.Set("X-Other", "1")
		req.Pattern = delivery.RouteBlob
		if faults := doc.faults(req, resp.StatusCode, resp.Header); len(faults) != 1 {
			t.Errorf("one header more: %q", faults)
		}
		if faults := doc.faults(req, 201, resp.Header); len(faults) != 1 {
			t.Errorf("another status: %q", faults)
		}
	}
	for status := range op.Responses {
		if !given[status] {
			t.Errorf("%s is described and not given", status)
		}
	}
}

// TestOpenAPIDescribesWhoCannotAnswer: a service that takes no work says so in the form
// that is described, and so does a socket's route to who wants none.
func TestOpenAPIDescribesWhoCannotAnswer(t *testing.T) {
	in := newWorld(t).start()
	for target, want := range map[string]int{"/v1/connect": 426, "/health/ready": 200} {
		resp, err := http.Get(in.http.URL + target)
		check(t, err)
		check(t, resp.Body.Close())
		if resp.StatusCode != want {
			t.Errorf("%s: %d", target, resp.StatusCode)
		}
	}
	in.Drain(t.Context(), 0)
	for _, target := range []string{"/v1/connect", "/health/ready", "/health"} {
		resp, err := http.Get(in.http.URL + target)
		check(t, err)
		check(t, resp.Body.Close())
		if resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", target, resp.StatusCode)
		}
	}
}

// TestOpenAPIDescribesEveryHeader: of those that the protocol has of its own.
func TestOpenAPIDescribesEveryHeader(t *testing.T) {
	raw, err := openAPI("tests", "0")
	check(t, err)
	for _, name := range []string{delivery.HeaderEnvelope, delivery.HeaderWork, delivery.HeaderOffset, delivery.HeaderTime} {
		if !strings.Contains(string(raw), strconv.Quote(name)) {
			t.Errorf("%s is not described", name)
		}
	}
	doc, err := readDocument()
	check(t, err)
	for target, methods := range doc.Paths {
		for method, op := range methods {
			for status, answer := range op.Responses {
				if _, has := answer.Headers[delivery.HeaderTime]; !has {
					t.Errorf("%s %s: %s without %s", method, target, status, delivery.HeaderTime)
				}
			}
		}
	}
}

// TestAcceptedIsWrittenAsDescribed: the answer that is written by hand is the one that
// the type describes.
func TestAcceptedIsWrittenAsDescribed(t *testing.T) {
	for _, a := range []delivery.Accepted{{}, {Seq: 1, Epoch: 2, AcceptedMS: 3}, {Seq: delivery.MaxNumber, Epoch: delivery.MaxNumber, AcceptedMS: -1, Duplicate: true}} {
		want, err := json.Marshal(a)
		check(t, err)
		if got := appendAccepted(nil, a); string(got) != string(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
