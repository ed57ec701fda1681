package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	testredis "github.com/tidefill/tidefill/internal/testservers/redis"
	tests3 "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/cluster"
	"github.com/tidefill/tidefill/store/live"
	"github.com/tidefill/tidefill/store/storetest"
)

const passwordVariable = "TIDEFILL_TEST_PASSWORD"

// TestMain sets the password once, since tests of the suites run in parallel.
func TestMain(m *testing.M) {
	if err := os.Setenv(passwordVariable, testpostgres.Password); err != nil {
		panic(err)
	}
	testpostgres.Main(m)
}

// options returns those of a node on a database of the shared server.
func options(t *testing.T, database, directory, node string) store.OpenOptions {
	cfg := cluster.DefaultConfig()
	cfg.Metadata.URL = strings.Replace(testpostgres.Shared(t).URL(database), ":"+strings.ReplaceAll(
		testpostgres.Password, " ", "%20")+"@", "@", 1)
	cfg.Metadata.PasswordEnv = passwordVariable
	return store.OpenOptions{Config: cfg, Directory: directory, Node: node, Expiry: time.Now}
}

func open(o store.OpenOptions) (*store.Backend, error) {
	backend, err := store.FindBackend(cluster.Name)
	if err != nil {
		return nil, err
	}
	return backend.Open(context.Background(), o)
}

func mustOpen(t *testing.T, o store.OpenOptions) *store.Backend {
	t.Helper()
	b, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// inBucket has files and results in a bucket, so that each process has a directory of its own.
func inBucket(t *testing.T, o store.OpenOptions, server *tests3.Server) store.OpenOptions {
	cfg := o.Config.(cluster.Config)
	cfg.Objects.Endpoint, cfg.Objects.Bucket = server.URL, tests3.Bucket
	cfg.Objects.PathStyle = true
	cfg.Objects.AccessKeyFile, cfg.Objects.SecretKeyFile = tests3.Secrets(t)
	o.Config, o.Directory = cfg, t.TempDir()
	return o
}

// Two processes share records, files and results.
func TestProcessesShareADirectory(t *testing.T) {
	database, directory := testpostgres.Shared(t).NewDatabase(t), t.TempDir()
	testShared(t, mustOpen(t, options(t, database, directory, "a")),
		mustOpen(t, options(t, database, directory, "b")))
}

func TestProcessesShareABucket(t *testing.T) {
	database, server := testpostgres.Shared(t).NewDatabase(t), tests3.Start(t)
	testShared(t, mustOpen(t, inBucket(t, options(t, database, "", "a"), server)),
		mustOpen(t, inBucket(t, options(t, database, "", "b"), server)))
}

func TestMetricsShowTheBackends(t *testing.T) {
	database, server := testpostgres.Shared(t).NewDatabase(t), tests3.Start(t)
	registry := prometheus.NewRegistry()
	o := inBucket(t, options(t, database, "", "a"), server)
	o.Registerer = registry
	testShared(t, mustOpen(t, o), mustOpen(t, inBucket(t, options(t, database, "", "b"), server)))
	counts := gather(t, registry)
	for _, name := range []string{"tidefill_postgres_transaction_seconds",
		"tidefill_postgres_connections", "tidefill_postgres_connections_limit",
		"tidefill_postgres_connections_opened_total", "tidefill_bucket_request_seconds"} {
		if counts[name] <= 0 {
			t.Errorf("%s is %v after a file was stored", name, counts[name])
		}
	}
	if failed := counts["tidefill_postgres_unavailable_total"]; failed != 0 {
		t.Errorf("%v transactions failed", failed)
	}
}

// gather sums the values of each metric and, as NAME/LABEL, those of its first label.
func gather(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			value := float64(m.GetHistogram().GetSampleCount()) + m.GetGauge().GetValue() +
				m.GetCounter().GetValue()
			sums[f.GetName()] += value
			if labels := m.GetLabel(); len(labels) > 0 {
				sums[f.GetName()+"/"+labels[0].GetValue()] += value
			}
		}
	}
	return sums
}

// A server that was away counts once, and a promoted standby too.
func TestMetricsCountFailovers(t *testing.T) {
	first := testpostgres.Start(t)
	database := first.NewDatabase(t)
	second := first.Standby(t)
	registry := prometheus.NewRegistry()
	o := options(t, database, t.TempDir(), "a")
	cfg := o.Config.(cluster.Config)
	cfg.Metadata.URL = fmt.Sprintf("postgres://%s@127.0.0.1:%d,127.0.0.1:%d/%s?sslmode=disable",
		testpostgres.User, first.Port, second.Port, database)
	o.Config, o.Registerer = cfg, registry
	b := mustOpen(t, o)
	var cursor store.Cursor
	follow := func() (err error) {
		_, cursor, err = b.Records.ChangedBatches(t.Context(), cursor, 10)
		return err
	}
	check := func(outages, promotions float64) {
		t.Helper()
		const name = "tidefill_postgres_failovers_total/"
		counts := gather(t, registry)
		if counts[name+"outage"] != outages || counts[name+"promotion"] != promotions {
			t.Errorf("got %v outages and %v promotions, want %v and %v", counts[name+"outage"],
				counts[name+"promotion"], outages, promotions)
		}
	}
	back := func() {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			err := follow()
			if err == nil {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	if err := follow(); err != nil {
		t.Fatal(err)
	}
	check(0, 0)
	first.Kill(t)
	for range 3 {
		if err := follow(); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("without a server: %v", err)
		}
	}
	check(0, 0)
	first.Restart(t)
	back()
	check(1, 0)
	// Later than what counts as the same outage.
	time.Sleep(6 * time.Second)
	first.Kill(t)
	if err := follow(); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("without a primary: %v", err)
	}
	second.Promote(t)
	back()
	check(2, 1)
}

func testShared(t *testing.T, a, b *store.Backend) {
	t.Helper()
	w, err := a.Blobs.Create(t.Context(), "files/f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("content")); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := store.File{ID: "f", Tenant: "t", Purpose: "batch", Filename: "f.jsonl", Bytes: 7,
		CreatedAt: time.Now().UTC(), BlobKey: "files/f"}
	if err := a.Records.CreateFile(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	seen, err := b.Records.File(t.Context(), "t", "f")
	if err != nil || seen.BlobKey != f.BlobKey {
		t.Fatalf("the other process sees %+v, %v", seen, err)
	}
	blob, err := b.Blobs.Open(t.Context(), seen.BlobKey)
	if err != nil || blob.Size() != 7 {
		t.Fatalf("the other process can't read the file: %v", err)
	}
	blob.Close()
}

// Two processes see each other's progress and events through Redis, and say so by their board.
func TestProcessesShareRedis(t *testing.T) {
	database, directory := testpostgres.Shared(t).NewDatabase(t), t.TempDir()
	server := testredis.Start(t, "--requirepass", "right")
	secret := func(password string) (path string) {
		path = filepath.Join(t.TempDir(), "redis")
		if err := os.WriteFile(path, []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	inRedis := func(node, password string) store.OpenOptions {
		o := options(t, database, directory, node)
		cfg := o.Config.(cluster.Config)
		cfg.Live.URL, cfg.Live.PasswordFile = "redis://"+server.Addr, secret(password)
		o.Config = cfg
		return o
	}
	a, b := mustOpen(t, inRedis("a", "right")), mustOpen(t, inRedis("b", "right"))
	owner, err := a.Records.Register(t.Context(), "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	post := store.ProgressPost{Progress: store.Progress{Completed: 7}}
	if err := a.Progress.PostProgress(t.Context(), owner,
		map[string]store.ProgressPost{"b": post}); err != nil {
		t.Fatal(err)
	}
	posts, err := b.Progress.ProgressPosts(t.Context(), []string{"b"})
	if err != nil || len(posts["b"]) != 1 || posts["b"][0].Completed != 7 {
		t.Errorf("the other process sees %+v, %v", posts, err)
	}
	if medium, is := b.Progress.(live.Medium); !is || medium.Away() != nil {
		t.Errorf("the board is a %T, want one that is a medium", b.Progress)
	}
	_, err = open(inRedis("c", "wrong"))
	if err == nil || !strings.Contains(err.Error(), "store.cluster.live: open Redis") ||
		strings.Contains(err.Error(), "wrong;") {
		t.Errorf("with a wrong password: %v", err)
	}
}

func TestJournalsInABucket(t *testing.T) {
	storetest.TestJournals(t, func(t *testing.T) (here, there store.Journals) {
		database, server := testpostgres.Shared(t).NewDatabase(t), tests3.Start(t)
		return mustOpen(t, inBucket(t, options(t, database, "", "a"), server)).Journals,
			mustOpen(t, inBucket(t, options(t, database, "", "b"), server)).Journals
	})
}

func TestJournals(t *testing.T) {
	storetest.TestJournals(t, func(t *testing.T) (here, there store.Journals) {
		database, directory := testpostgres.Shared(t).NewDatabase(t), t.TempDir()
		return mustOpen(t, options(t, database, directory, "a")).Journals,
			mustOpen(t, options(t, database, directory, "b")).Journals
	})
}

func TestMistakesAreRefusedWithARemedy(t *testing.T) {
	server := testpostgres.Shared(t)
	database, directory := server.NewDatabase(t), t.TempDir()
	mustOpen(t, options(t, database, directory, "a"))
	bucket := tests3.Start(t)
	mustOpen(t, inBucket(t, options(t, server.NewDatabase(t), "", "z"), bucket))
	embedded := t.TempDir()
	if err := os.WriteFile(filepath.Join(embedded, "tidefill.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, want string
		change     func(*store.OpenOptions, *cluster.Config)
	}{
		{"the same node", "name", func(*store.OpenOptions, *cluster.Config) {}},
		{"the directory of another cluster", "data: directory " + directory + " belongs to the " +
			"installation",
			func(o *store.OpenOptions, c *cluster.Config) {
				other := options(t, server.NewDatabase(t), directory, "b")
				o.Node, c.Metadata = other.Node, other.Config.(cluster.Config).Metadata
			}},
		{"an embedded store", "set store.backend: embedded",
			func(o *store.OpenOptions, _ *cluster.Config) { o.Directory = embedded }},
		{"no address", "store.cluster.metadata: open PostgreSQL: url: is empty",
			func(_ *store.OpenOptions, c *cluster.Config) { c.Metadata.URL = "" }},
		{"no password", "password_env",
			func(_ *store.OpenOptions, c *cluster.Config) { c.Metadata.PasswordEnv = "UNSET" }},
		{"the bucket of another cluster", "delete object tidefill/cluster if that installation",
			func(o *store.OpenOptions, c *cluster.Config) {
				*o = inBucket(t, options(t, server.NewDatabase(t), "", "b"), bucket)
				*c = o.Config.(cluster.Config)
			}},
		{"no database", "there is no such database; create it",
			func(_ *store.OpenOptions, c *cluster.Config) {
				c.Metadata.URL = strings.Replace(c.Metadata.URL, "/"+database, "/nowhere", 1)
			}},
	} {
		o := options(t, database, directory, "a")
		cfg := o.Config.(cluster.Config)
		test.change(&o, &cfg)
		o.Config = cfg
		b, err := open(o)
		if err == nil {
			b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), testpostgres.Password) {
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.want)
		}
	}
}

func TestValidateNamesTheKeys(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.ReserveBytes, cfg.Metadata.MaxConnections, cfg.Live.URL = -1, 1, "redis.example"
	err := cfg.Validate()
	for _, want := range []string{"metadata.url: is empty", "metadata.max_connections: is 1",
		"live.url: it has no scheme", "reserve_bytes: is -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
