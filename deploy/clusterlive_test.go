package deploy_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/internal/apptest"
	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	testredis "github.com/tidefill/tidefill/internal/testservers/redis"
	tests3 "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/runner/emulator"
	"github.com/tidefill/tidefill/store/cluster"
)

// A real Prometheus that scrapes a busy daemon on PostgreSQL, a bucket and Redis has data for all
// panels of the cluster store, but for those of failures and of other replicas.
func TestClusterQueriesHaveData(t *testing.T) {
	daemon := startClusterDaemon(t)
	prometheus := startPrometheus(t, strings.TrimPrefix(daemon.AdminURL(), "http://"))
	panels := loadDashboard(t).Panels
	row := slices.IndexFunc(panels, func(p panel) bool { return p.Title == clusterRow })
	deadline := time.Now().Add(90 * time.Second)
	for _, p := range panels[row+1:] {
		for _, target := range p.Targets {
			alone := strings.Contains(target.Expr, "tidefill_snapshot_lag_seconds")
			if !alone && !strings.Contains(target.Expr, `result="failed"`) {
				awaitData(t, prometheus, strings.ReplaceAll(target.Expr, "$__rate_interval", "10s"),
					deadline)
			}
		}
	}
	page := string(get(t, daemon.AdminURL()+"/metrics"))
	for name, reason := range withoutData {
		if reason == embedded && !strings.Contains(page, "\n"+name) {
			t.Errorf("the page of a daemon with the cluster store lacks %s", name)
		}
	}
}

// startClusterDaemon runs a daemon on real servers that has a batch in progress.
func startClusterDaemon(t *testing.T) *app.App {
	t.Helper()
	const passwordVariable = "TIDEFILL_TEST_PASSWORD"
	t.Setenv(passwordVariable, testpostgres.Password)
	database := testpostgres.Start(t)
	address, err := url.Parse(database.URL(database.NewDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.User(address.User.Username())
	bucket := tests3.Start(t)
	store := cluster.DefaultConfig()
	store.Metadata.URL, store.Metadata.PasswordEnv = address.String(), passwordVariable
	store.Objects.Endpoint, store.Objects.Bucket = bucket.URL, tests3.Bucket
	store.Objects.PathStyle = true
	store.Objects.AccessKeyFile, store.Objects.SecretKeyFile = tests3.Secrets(t)
	store.Live.URL = "redis://" + testredis.Start(t).Addr + "/0"

	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, func(c *emulator.Config) {
		c.Faults.Latency = emulator.Duration(20 * time.Millisecond) // so that the batch lasts
	}))
	cfg.Store.Backend = cluster.Name
	cfg.Store.Settings[cluster.Name] = store
	daemon, _ := apptest.Start(t, cfg, app.Options{})
	apptest.Submit(t, daemon, 50_000)
	return daemon
}
