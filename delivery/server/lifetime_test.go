package server

import (
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/mls"
)

// TestAttackLongLivedKeyPackage: a key package of a longer total lifetime than the
// rooms' is not published, however soon it ends, nor comes in by a commit (RFC 9420
// §7.2).
func TestAttackLongLivedKeyPackage(t *testing.T) { eachSuite(t, attackLongLivedKeyPackage) }

func attackLongLivedKeyPackage(t *testing.T, w *world) {
	in := w.start()
	p := in.people("ada", "eve")
	ada, eve := p[0], p[1]
	id := group(t, ada)
	living := func(from, to time.Duration) *mls.KeyPackageBundle {
		return eve.bundle(func(k *mls.KeyPackageParams) { k.NotBefore, k.NotAfter = eve.now().Add(from), eve.now().Add(to) })
	}
	publish := func(b *mls.KeyPackageBundle) error {
		return eve.json(delivery.RoutePublish, delivery.PublishRequest{Packages: [][]byte{b.Message()}}, nil)
	}
	const day = 24 * time.Hour
	check(t, publish(living(-day, policy.MaxLifetime-day)))
	long := living(-day, policy.MaxLifetime-day+time.Second)
	for name, b := range map[string]*mls.KeyPackageBundle{
		"a second too long":       long,
		"for years, ends shortly": living(-3000*day, day),
		"for ever":                living(-day, 100_000*day),
	} {
		if e := wantCode(t, publish(b), delivery.CodeBadRequest); !strings.Contains(e.Detail, "package") {
			t.Errorf("%s: %q", name, e.Detail)
		}
	}
	ada.sync(id)
	e := ada.refusedWith(id, request(ada.prepare(id, append(ada.adding(id, eve.owner)[1:], mls.AddProposal(&long.KeyPackage))...)), delivery.CodeBadRequest)
	if !strings.Contains(e.Detail, "not valid") {
		t.Errorf("the commit: %q", e.Detail)
	}
}
