package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/store/sqlite"
	"github.com/askucher/compax-core/store/storetest"
)

func kind() storetest.Kind {
	return storetest.Kind{Place: func(t testing.TB) storetest.Opener {
		path := filepath.Join(t.TempDir(), "store.db")
		return func(ctx context.Context) (delivery.Store, error) { return sqlite.Open(ctx, path) }
	}}
}

func TestContract(t *testing.T) { storetest.Run(t, kind()) }
