// Package native carries delivery/client's requests by net/http and its socket
// by a WebSocket library. It is the transport of everything but browsers.
package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
)

// Transport implements client.Transport. The zero value is not usable; call [New].
type Transport struct {
	http   *http.Client
	window time.Duration // see steady
}

// New makes a transport with connections of its own. It never follows
// redirects: a delivery service gives none, and a token must not travel.
func New() *Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &Transport{window: progressWindow, http: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 60 * time.Second,
			MaxIdleConns: 100, MaxIdleConnsPerHost: 32, IdleConnTimeout: 90 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Do implements client.Transport.
func (t *Transport) Do(ctx context.Context, r client.Request) (client.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, r.Body)
	if err != nil {
		cancel()
		return client.Response{}, fmt.Errorf("request: %w", err)
	}
	if r.Body != nil {
		req.ContentLength = r.Size
		if r.Size == 0 {
			req.Body = http.NoBody
		}
	}
	for k, v := range r.Header {
		req.Header.Set(k, v)
	}
	res, err := t.http.Do(req)
	if err != nil {
		cancel()
		return client.Response{}, err
	}
	return client.Response{Status: res.StatusCode, Header: res.Header.Get, Body: newSteady(res.Body, t.window, cancel)}, nil
}

// Dial implements client.Transport.
func (t *Transport) Dial(ctx context.Context, url string) (client.Socket, error) {
	url = "ws" + strings.TrimPrefix(url, "http") // http → ws, https → wss
	ws, res, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: t.http, CompressionMode: websocket.CompressionDisabled})
	if res != nil && res.Body != nil {
		_ = res.Body.Close() // empty after an upgrade; a refusal's text is in err
	}
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(delivery.MaxFrame)
	return socket{ws}, nil
}

// Close drops idle connections.
func (t *Transport) Close() { t.http.CloseIdleConnections() }

type socket struct{ ws *websocket.Conn }

var errText = errors.New("a text message on a binary socket")

func (s socket) Read(ctx context.Context) ([]byte, error) {
	kind, r, err := s.ws.Reader(ctx)
	if err != nil {
		return nil, err
	}
	if kind != websocket.MessageBinary {
		return nil, errText
	}
	return io.ReadAll(r)
}

func (s socket) Write(ctx context.Context, message []byte) error {
	return s.ws.Write(ctx, websocket.MessageBinary, message)
}

func (s socket) Close() error { return s.ws.CloseNow() }
