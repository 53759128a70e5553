package sdk_test

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/sdk"
)

// TestAttackNoKeyPackagesLeft: a service that always says that no key packages are
// left fills no disk: the private keys of the newest are kept, a bounded number.
func TestAttackNoKeyPackagesLeft(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	b := ada.through()
	const rounds = sdk.BundlesAtMost/21 + 2 // 20 and one of last resort each
	mail := delivery.MailResponse{}
	for i := range uint64(rounds) {
		mail.Items = append(mail.Items, delivery.MailView{ID: i + 1, Kind: delivery.MailLowKeys})
	}
	b.answer = func(method, path string, _ url.Values) (int, string, []byte) {
		switch path {
		case "/v1/mailbox":
			return 200, "application/json", jsonOf(t, mail)
		case "/v1/keypackages":
			return 200, "application/json", jsonOf(t, delivery.KeyPackageCount{LowWater: 20})
		}
		return 0, "", nil
	}
	must(t, ada.ReadMail(ctx))
	mail.Items = mail.Items[:1]
	ada.ahead = time.Hour
	must(t, ada.ReadMail(ctx))
	kept, err := ada.Bundles(ctx)
	must(t, err)
	for _, suite := range policy.Suites {
		ends := kept[suite]
		if len(ends) != sdk.BundlesAtMost {
			t.Errorf("suite %#04x: %d private keys are kept, want %d", uint16(suite), len(ends), sdk.BundlesAtMost)
		}
		// The newest batch was made an hour after all others, within some seconds.
		newest := slices.Max(ends)
		slices.Sort(ends)
		older, _ := slices.BinarySearch(ends, newest-uint64(time.Hour/time.Second)/2)
		if n := len(ends) - older; n != 21 {
			t.Errorf("suite %#04x: %d of the 21 newest are kept", uint16(suite), n)
		}
	}
}
