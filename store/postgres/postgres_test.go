package postgres_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/store/postgres"
	"github.com/askucher/compax-core/store/storetest"
)

// server is the URL of a PostgreSQL that tests may fill.
func server(t testing.TB) string {
	t.Helper()
	u := os.Getenv("COMPAX_TEST_POSTGRES")
	if u == "" {
		const why = "COMPAX_TEST_POSTGRES names no PostgreSQL server (a URL); make test starts one"
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip("SKIPPED: " + why)
	}
	return u
}

// schema makes an empty schema that goes when the test ends, and a URL in
// which it is the only one.
func schema(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	admin(t, "CREATE SCHEMA "+name)
	t.Cleanup(func() { admin(t, "DROP SCHEMA "+name+" CASCADE") })
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// admin runs a statement on a connection of its own.
func admin(t testing.TB, sql string) {
	t.Helper()
	ctx := context.Background() // also after the test ended
	c, err := pgx.Connect(ctx, server(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(ctx, sql); err != nil {
		t.Error(err)
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

func kind() storetest.Kind {
	return storetest.Kind{Shared: true, Place: func(t testing.TB) storetest.Opener {
		u := schema(t)
		return func(ctx context.Context) (delivery.Store, error) { return postgres.Open(ctx, u) }
	}}
}

func TestContract(t *testing.T) {
	server(t)
	storetest.Run(t, kind())
}
