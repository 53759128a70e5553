package node

import (
	"bytes"
	_ "embed"
	"html/template"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

//go:embed page.html
var pageSource string

var page = template.Must(template.New("page").Parse(pageSource))

// handler serves the API, and at the root a page that says what this is.
func (n *Node) handler() http.Handler {
	api := n.service.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.ContentLength == 0 {
			n.servePage(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

func (n *Node) servePage(w http.ResponseWriter, r *http.Request) {
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	var b bytes.Buffer
	if err := page.Execute(&b, map[string]string{"Name": n.config.Name, "URL": scheme + "://" + r.Host, "Home": n.home.String()}); err != nil {
		http.Error(w, "the page cannot be made", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(b.Bytes()) // the reader is gone: nobody to tell
}

// clientAddress finds the sender of a request behind trusted proxies: the last
// address of X-Forwarded-For that is not one of theirs.
func clientAddress(proxies []netip.Prefix) func(*http.Request) string {
	if len(proxies) == 0 {
		return nil
	}
	trusted := func(text string) bool {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return false
		}
		for _, p := range proxies {
			if p.Contains(a.Unmap()) {
				return true
			}
		}
		return false
	}
	return func(r *http.Request) string {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = r.RemoteAddr
		}
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for i := len(hops) - 1; i >= 0 && trusted(host); i-- {
			hop := strings.TrimSpace(hops[i])
			if hop == "" {
				continue
			}
			a, ok := hopAddress(hop)
			if !ok {
				break // it says nothing: then whoever wrote it is the sender
			}
			host = a
		}
		return host
	}
}

// hopAddress reads one entry of X-Forwarded-For: an address, with a port behind some
// proxies.
func hopAddress(hop string) (string, bool) {
	if a, err := netip.ParseAddr(strings.Trim(hop, "[]")); err == nil {
		return a.String(), true
	}
	if a, err := netip.ParseAddrPort(hop); err == nil {
		return a.Addr().String(), true
	}
	return "", false
}

// quiet keeps the HTTP server's own complaints, which name addresses, out of
// the log: they are counted nowhere and help nobody.
func quiet(l *slog.Logger) *log.Logger {
	return slog.NewLogLogger(discardAddresses{l.Handler()}, slog.LevelDebug)
}
