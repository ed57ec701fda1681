package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/apptest"
)

// holdingRunner serves the model "m" and holds every request until its sender cancels it.
type holdingRunner struct {
	url     string
	holding atomic.Int64
	ended   chan time.Time // of each request that was cancelled
}

func startHoldingRunner(t *testing.T) *holdingRunner {
	t.Helper()
	h := &holdingRunner{ended: make(chan time.Time, 10_000)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		h.holding.Add(1)
		defer h.holding.Add(-1)
		<-r.Context().Done()
		h.ended <- time.Now()
	})
	server := httptest.NewServer(mux)
	h.url = server.URL
	t.Cleanup(server.Close)
	return h
}

// createBatch uploads a file of lines for the model "m" at one daemon and creates its batch at
// another one.
func createBatch(t *testing.T, upload, create string, lines int) (id string) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	form.WriteField("purpose", "batch")
	file, err := form.CreateFormFile("file", "input.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		fmt.Fprintf(file, `{"custom_id":"%d","method":"POST","url":"/v1/chat/completions","body":`+
			`{"model":"m","messages":[{"role":"user","content":"hello"}]}}`+"\n", i)
	}
	form.Close()
	var created struct{ ID string }
	callJSON(t, http.MethodPost, upload+"/v1/files", form.FormDataContentType(), &body, &created)
	text := fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions",`+
		`"completion_window":"24h"}`, created.ID)
	callJSON(t, http.MethodPost, create+"/v1/batches", "application/json",
		bytes.NewBufferString(text), &created)
	return created.ID
}

// callJSON sends a request, fails the test unless it succeeds, and decodes the answer.
func callJSON(t *testing.T, method, url, kind string, body io.Reader, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %v\n%s", method, url, answer.Status, err, text)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%s %s: %v\n%s", method, url, err, text)
		}
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.After(time.Minute); !done(); {
		select {
		case <-end:
			t.Fatalf("waited a minute for %s", what)
		case <-again.C:
		}
	}
}

// measureCancel returns how long it takes from the request to cancel, at a daemon that does not
// lead, until the lines in flight have been cancelled at the runner.
func measureCancel(t *testing.T, runner *holdingRunner, leader, other *app.App) []time.Duration {
	t.Helper()
	var took []time.Duration
	for range 10 {
		id := createBatch(t, leader.URL(), leader.URL(), 4)
		eventually(t, "the lines to be in flight", func() bool {
			return runner.holding.Load() == 4
		})
		began := time.Now()
		callJSON(t, http.MethodPost, other.URL()+"/v1/batches/"+id+"/cancel", "", nil, nil)
		for range 4 {
			select {
			case at := <-runner.ended:
				if d := at.Sub(began); len(took) == 0 || d > 0 {
					took = append(took, d)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("a line was not cancelled within 20 s")
			}
		}
	}
	slices.Sort(took)
	return took
}

func TestCancelReachesTheLeader(t *testing.T) {
	runner := startHoldingRunner(t)
	dir := t.TempDir()
	cfg := apptest.Config(dir, runner.url)
	leader, _ := apptest.Start(t, cfg, app.Options{})
	cfg.Node = "other"
	other, _ := apptest.Start(t, cfg, app.Options{})
	took := measureCancel(t, runner, leader, other)
	t.Logf("cancelled after %v, at most %v", took[len(took)/2], took[len(took)-1])
	// The embedded store is looked at every 40 ms.
	if median := took[len(took)/2]; median > 500*time.Millisecond {
		t.Errorf("lines were cancelled after %v, at half of the batches", median)
	}
}

// Processes of one store divide the work by roles, also without Redis.
func TestRolesDivideTheWork(t *testing.T) {
	runner := startHoldingRunner(t)
	cfg := apptest.Config(t.TempDir(), runner.url)
	cfg.Roles = []config.Role{config.RoleDispatch}
	dispatching, _ := apptest.Start(t, cfg, app.Options{})
	cfg.Node, cfg.Roles = "users", []config.Role{config.RoleAPI}
	serving, _ := apptest.Start(t, cfg, app.Options{})

	if url := dispatching.URL(); url != "" {
		t.Errorf("a process that only dispatches serves users at %s", url)
	}
	id := createBatch(t, serving.URL(), serving.URL(), 4)
	eventually(t, "the lines to be in flight", func() bool { return runner.holding.Load() == 4 })

	state := func(a *app.App) string {
		var r struct {
			Ready bool
			Roles map[string]struct{ State string }
		}
		callJSON(t, http.MethodGet, a.AdminURL()+"/readyz", "", nil, &r)
		return fmt.Sprint(r.Ready, r.Roles)
	}
	if got, want := state(dispatching), "true map[dispatch:{leading}]"; got != want {
		t.Errorf("the process that dispatches: %s, want %s", got, want)
	}
	if got, want := state(serving), "true map[api:{serving}]"; got != want {
		t.Errorf("the process that serves users: %s, want %s", got, want)
	}
	eventually(t, "the process that serves users to show the pool", func() bool {
		var pools struct {
			Data []struct {
				Node string
				Age  float64 `json:"age_s"`
			}
		}
		callJSON(t, http.MethodGet, serving.AdminURL()+"/admin/pools", "", nil, &pools)
		return len(pools.Data) == 1 && pools.Data[0].Node == "test" && pools.Data[0].Age < 30
	})
	var models struct{ Data []struct{ ID string } }
	callJSON(t, http.MethodGet, serving.URL()+"/v1/models", "", nil, &models)
	if len(models.Data) != 1 || models.Data[0].ID != "m" {
		t.Errorf("models: %+v", models)
	}
	callJSON(t, http.MethodPost, serving.URL()+"/v1/batches/"+id+"/cancel", "", nil, nil)
	eventually(t, "the lines to be cancelled", func() bool { return runner.holding.Load() == 0 })
}
