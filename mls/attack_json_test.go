package mls_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// What holds secrets says none when it is logged or written as JSON, whichever of
// the handlers of log/slog a program has.
func TestAttackSecretsInLogs(t *testing.T) {
	w := trio(t, 4)
	w.Chat(8)
	c := w.Members[0]
	sealed, err := c.Group.Seal(mls.SealParams{Random: w.Random(), Content: []byte("text")})
	if err != nil {
		t.Fatal(err)
	}
	commit := commitOf(t, w, c, mls.CommitParams{})
	bundle := w.Client().KeyPackage(w.Now)
	secret := bytes.Repeat([]byte("secret"), 6)
	var hidden []string // what would give a secret away, wherever in the base64 of a record it begins
	secrets := append(c.Group.Secrets(), sealed.Next.Secrets()...)
	for _, s := range append(secrets, bundle.InitPrivate, bundle.EncryptionPrivate, secret) {
		for i := range 3 {
			hidden = append(hidden, base64.StdEncoding.EncodeToString(s[i:])[:12])
		}
	}
	for _, thing := range []any{
		c.Group, sealed, sealed.Step, sealed.Delta, commit, commit.Keep(), bundle, c.Group.Records(), c.Group.Records()[0],
		&wire.GroupSecrets{JoinerSecret: secret, PathSecret: &wire.PathSecret{PathSecret: secret}},
		wire.GroupSecrets{JoinerSecret: secret}, wire.PathSecret{PathSecret: secret}, &wire.PathSecret{PathSecret: secret},
	} {
		var out bytes.Buffer
		if b, err := json.Marshal(thing); err == nil {
			out.Write(b)
		}
		slog.New(slog.NewJSONHandler(&out, nil)).Info("a step", "value", thing)
		slog.New(slog.NewTextHandler(&out, nil)).Info("a step", "value", thing)
		for _, h := range hidden {
			if strings.Contains(out.String(), h) {
				t.Errorf("%T shows a secret", thing)
				break
			}
		}
	}
}
