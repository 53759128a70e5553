package node

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/askucher/compax-core/internal/durable"
)

// metricsToken is the configured one, or one that is made at the first start
// and kept where its owner alone can read it.
func metricsToken(c Config) (string, error) {
	if c.MetricsToken != "" || c.MetricsListen == "off" {
		return c.MetricsToken, nil
	}
	path := filepath.Join(c.Dir, "metrics.token")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		random := make([]byte, 32)
		if _, err := rand.Read(random); err != nil {
			return "", err
		}
		b = []byte(hex.EncodeToString(random) + "\n")
		err = durable.Create(path, b)
	}
	if err != nil {
		return "", fmt.Errorf("metrics token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if len(token) < minToken {
		return "", fmt.Errorf("metrics token: %s has %d bytes, at least %d; delete it to have one made", path, len(token), minToken)
	}
	return token, nil
}

// metricsHandler serves the metrics to who has the token, loopback included.
func (n *Node) metricsHandler() http.Handler {
	serve := promhttp.HandlerFor(n.registry, promhttp.HandlerOpts{})
	want := []byte("Bearer " + n.token)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
			return
		}
		serve.ServeHTTP(w, r)
	})
	return mux
}
