package postgres_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/postgres"
	"github.com/tidefill/tidefill/store/storetest"
)

// passwordEnv holds the password of the test servers in the environment.
const passwordEnv = "TIDEFILL_TEST_POSTGRES_PASSWORD"

func TestMain(m *testing.M) {
	os.Setenv(passwordEnv, testpostgres.Password)
	testpostgres.Main(m)
}

func TestMetadata(t *testing.T) {
	storetest.TestMetadata(t, func(t *testing.T, now func() time.Time) storetest.Store {
		return storetest.StoreOf(openNew(t, now))
	})
}

// PgBouncer in transaction mode keeps no session for a client.
func TestMetadataBehindPgBouncer(t *testing.T) {
	bouncer := testpostgres.StartBouncer(t, testpostgres.Shared(t))
	suite := storetest.TestMetadata
	if testing.Short() {
		suite = storetest.TestLocks
	}
	suite(t, func(t *testing.T, now func() time.Time) storetest.Store {
		database := testpostgres.Shared(t).NewDatabase(t)
		return storetest.StoreOf(open(t, bouncer.URL(database), postgres.Options{Now: now}))
	})
}

func TestPostsOfASupersededOwnerAreRefused(t *testing.T) {
	db := openNew(t, nil)
	o, err := db.Register(t.Context(), "n", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Unregister(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	err = db.PostProgress(t.Context(), o, map[string]store.ProgressPost{"b": {}})
	if !errors.Is(err, store.ErrFenced) {
		t.Errorf("post after unregistering: got %v, want %v", err, store.ErrFenced)
	}
}

// openNew opens an empty database. now is the clock of leases; nil: the server's.
func openNew(t testing.TB, now func() time.Time) *postgres.DB {
	t.Helper()
	s := testpostgres.Shared(t)
	return open(t, s.URL(s.NewDatabase(t)), postgres.Options{Now: now})
}

// open opens the database at an address that has the password of the test servers.
func open(t testing.TB, address string, o postgres.Options) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), config(t, address), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// config returns the configuration for an address of the test servers.
func config(t testing.TB, address string) postgres.Config {
	t.Helper()
	c := postgres.DefaultConfig()
	scheme, rest, _ := strings.Cut(address, "://")
	_, host, _ := strings.Cut(rest, "@")
	c.URL, c.PasswordEnv = scheme+"://"+testpostgres.User+"@"+host, passwordEnv
	return c
}
