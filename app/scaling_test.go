package app_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/registry"
)

// scaledDaemon is a daemon with the pool night, whose replicas come and go, and KEDA's view of it.
type scaledDaemon struct {
	*app.App
	t      *testing.T
	cfg    config.Config
	hangup chan os.Signal
	scaler externalscaler.ExternalScalerClient
	stop   func()
}

// startScaled runs a daemon with all roles, or with these, whose pool has no replica.
func startScaled(t *testing.T, roles ...config.Role) *scaledDaemon {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := apptest.Config(t.TempDir())
	cfg.Pools = []config.PoolConfig{{Pool: registry.Pool{Name: "night",
		Models: []string{"m"}, Max: 3, Role: registry.RoleBatch}}}
	cfg.Scaler.Listen = listener.Addr().String()
	cfg.Autoscale.Record = filepath.Join(t.TempDir(), "decisions.jsonl")
	if len(roles) > 0 {
		cfg.Roles = roles
	}
	d := &scaledDaemon{t: t, cfg: cfg, hangup: make(chan os.Signal)}
	d.App, d.stop = apptest.Start(t, cfg, app.Options{ScalerListener: listener, Reload: d.hangup,
		Load: func() (config.Config, error) { return d.cfg, nil }})
	conn, err := grpc.NewClient(d.ScalerAddr(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	d.scaler = externalscaler.NewExternalScalerClient(conn)
	return d
}

var nightObject = &externalscaler.ScaledObjectRef{Name: "night", Namespace: "llm",
	ScalerMetadata: map[string]string{"pool": "night", "scalerAddress": "x"}}

// await waits until KEDA is answered so about the runners.
func (d *scaledDaemon) await(what string, is func(replicas float64, active bool) bool) {
	d.t.Helper()
	d.awaitOf(nightObject, "tidefill-replicas-night", what, is)
}

// awaitOf waits until KEDA is answered so about the object with this metric.
func (d *scaledDaemon) awaitOf(
	object *externalscaler.ScaledObjectRef, metric, what string,
	is func(replicas float64, active bool) bool,
) {
	d.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		metrics, err := d.scaler.GetMetrics(d.t.Context(), &externalscaler.GetMetricsRequest{
			ScaledObjectRef: object, MetricName: metric})
		var active *externalscaler.IsActiveResponse
		if err == nil {
			active, err = d.scaler.IsActive(d.t.Context(), object)
		}
		if err == nil && is(metrics.MetricValues[0].MetricValueFloat, active.Result) {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("%s: KEDA gets %v, %v, %v", what, metrics, active, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// checkPreview checks that a dry run says what a batch needs, before it exists.
func checkPreview(t *testing.T, d *scaledDaemon, file string) {
	t.Helper()
	ask := func(window string) (preview map[string]any) {
		body := `{"input_file_id":"` + file + `","endpoint":"/v1/chat/completions",` +
			`"completion_window":"` + window + `"}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			d.URL()+"/v1/batches?dry_run=true", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if err := json.NewDecoder(answer.Body).Decode(&preview); err != nil ||
			answer.StatusCode != http.StatusOK {
			t.Fatalf("a dry run is answered %d, %v, %v", answer.StatusCode, preview, err)
		}
		return preview
	}
	if p := ask("24h"); p["verdict"] != "ok" || p["predicted_finish"] == nil ||
		p["lines"] != 50.0 {
		t.Errorf("within a day: got %v", p)
	}
	if p := ask("1m"); p["verdict"] != "infeasible" { // a start takes longer
		t.Errorf("within a minute: got %v", p)
	}
}

// A batch for a pool without replicas is accepted and wants one in time; when the replica is there
// the lines are answered, and then none is wanted.
func TestFromZeroAndBack(t *testing.T) {
	d := startScaled(t)
	d.await("without work", func(replicas float64, active bool) bool {
		return replicas == 0 && !active
	})
	c, err := client.New(d.URL(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	lines := apptest.BatchFile(50)
	file, err := c.Upload(t.Context(), "x.jsonl", strings.NewReader(lines), int64(len(lines)))
	if err != nil {
		t.Fatal(err)
	}
	checkPreview(t, d, file.ID)
	batch, err := c.CreateBatch(t.Context(), client.BatchRequest{InputFileID: file.ID,
		Endpoint: "/v1/chat/completions", CompletionWindow: "24h",
		Tidefill: &client.RequestExtensions{StartBy: "1m"}})
	if err != nil {
		t.Fatal(err)
	}
	if batch.Tidefill.Verdict != "ok" {
		t.Errorf("the creation is answered with the verdict %q, want ok", batch.Tidefill.Verdict)
	}
	d.await("a batch must start soon", func(replicas float64, active bool) bool {
		return replicas == 1 && active
	})
	awaitBatch := func(what string, is func(client.Batch) bool) {
		t.Helper()
		deadline := time.Now().Add(60 * time.Second)
		for {
			b, err := c.Batch(t.Context(), batch.ID)
			if err != nil {
				t.Fatal(err)
			}
			if is(b) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: the batch is %s, %+v", what, b.Status, b.Tidefill)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	awaitBatch("its verdict, and why it waits", func(b client.Batch) bool {
		return b.Tidefill.Verdict == "ok" && strings.Contains(b.Tidefill.Waiting,
			"no replica of pool night is ready")
	})
	// The replica that was started is ready.
	d.cfg.Upstreams = []dispatch.Upstream{{URL: apptest.StartRunner(t, nil), Pool: "night"}}
	d.hangup <- syscall.SIGHUP
	awaitBatch("its end", func(b client.Batch) bool { return b.Status == "completed" })
	d.await("the work is done", func(replicas float64, active bool) bool {
		return replicas == 0 && !active
	})
	d.stop()
	if series := checkRecord(t, d.cfg.Autoscale); !slices.Equal(series, []int{0, 1, 0}) {
		t.Errorf("the replicas were %v, want 0, 1 and 0", series)
	}
}

// Pools and the settings of scaling follow a reload.
func TestPoolsFollowAReload(t *testing.T) {
	d := startScaled(t)
	d.await("at first", func(replicas float64, _ bool) bool { return replicas == 0 })
	d.cfg.Pools = slices.Clone(d.cfg.Pools)
	d.cfg.Pools[0].Min, d.cfg.Pools[0].Models = 2, []string{"m", "n"}
	d.hangup <- syscall.SIGHUP
	d.await("two at least", func(replicas float64, _ bool) bool { return replicas == 2 })
	_, page := answerOf(t, http.MethodGet, d.AdminURL()+"/metrics")
	if !strings.Contains(page, "\ntidefill_config_changes_pending_restart 0\n") {
		t.Error("a change waits for a restart")
	}
	d.cfg.Autoscale.Policy = "static" // the maximum
	d.hangup <- syscall.SIGHUP
	d.await("another policy", func(replicas float64, _ bool) bool { return replicas == 3 })
}

// Who does not dispatch does not decide, and yet a batch has the first dispatcher started, which
// checks it; when it is cancelled, none is needed.
func TestABatchWantsTheFirstDispatcher(t *testing.T) {
	d := startScaled(t, config.RoleAPI, config.RoleScale)
	object := &externalscaler.ScaledObjectRef{Name: "workers", Namespace: "llm",
		ScalerMetadata: map[string]string{"pool": "night", "role": "dispatchers"}}
	await := func(what string, replicas float64) {
		t.Helper()
		d.awaitOf(object, "tidefill-dispatchers-night", what, func(got float64, active bool) bool {
			return got == replicas && active == (replicas > 0)
		})
	}
	await("without work", 0)
	c, batch := apptest.Submit(t, d.App, 5)
	await("a batch is to be checked", 1)
	if b, err := c.Batch(t.Context(), batch.ID); err != nil || b.Status != "validating" {
		t.Errorf("the batch is %+v, %v", b, err)
	}
	_, err := d.scaler.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{
		ScaledObjectRef: nightObject, MetricName: "tidefill-replicas-night"})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the runners, about which nothing is decided: got %v, want unavailable", err)
	}
	if _, err := c.Cancel(t.Context(), batch.ID); err != nil {
		t.Fatal(err)
	}
	await("a batch is to be ended", 1)
	cfg := d.cfg
	cfg.Node, cfg.Roles, cfg.Scaler.Listen = "dispatcher", []config.Role{config.RoleDispatch}, ""
	cfg.Autoscale.Record = ""
	apptest.Start(t, cfg, app.Options{})
	await("the batch has ended", 0)
}
