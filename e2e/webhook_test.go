package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// delivery is what an endpoint of webhooks received.
type delivery struct {
	Body    string            `json:"body"`
	Headers map[string]string `json:"headers"`
	header  http.Header
}

// endpoint receives webhooks. It fails the first attempt of each delivery.
type endpoint struct {
	*httptest.Server
	mu       sync.Mutex
	accepted []delivery
	attempts map[string]int // by webhook-id
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{attempts: map[string]int{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		id := r.Header.Get("webhook-id")
		if e.attempts[id]++; e.attempts[id] == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		d := delivery{Body: string(body), Headers: map[string]string{}, header: r.Header.Clone()}
		for name := range r.Header {
			d.Headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		e.accepted = append(e.accepted, d)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) got() []delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.accepted)
}

// webhookSecrets are those of the daemons' webhooks, the newest first.
var webhookSecrets = func() []string {
	secrets := make([]string, 2)
	for i := range secrets {
		secrets[i] = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(
			fmt.Sprint(i), 32)))
	}
	// Set here: tests that run in parallel may not change the environment.
	os.Setenv("TIDEFILL_E2E_WEBHOOK", strings.Join(secrets, " "))
	return secrets
}()

// What OpenAI's SDKs verify as its webhooks arrives for every batch, also for those that ended
// while the daemon was killed.
func TestSDKsAcceptWebhooks(t *testing.T) {
	t.Parallel()
	secrets := webhookSecrets
	e := newEndpoint(t)
	d, _ := newServed(t, fmt.Sprintf(
		`webhooks=[{name: e2e, url: "%s/hook", secret_env: TIDEFILL_E2E_WEBHOOK}]`, e.URL))
	c := sdk(d, ownKey)
	faulty, err := c.Batches.New(t.Context(), newBatch(uploadSDK(t, c, []byte("{}\n")).ID))
	if err != nil || faulty.Status != openai.BatchStatusFailed {
		t.Fatalf("%v, %v", faulty, err)
	}
	done, err := c.Batches.New(t.Context(), newBatch(uploadSDK(t, c, NewLines("hook", "m",
		20).Content).ID))
	if err != nil {
		t.Fatal(err)
	}
	awaitSDK(t, c, done.ID)
	d.Kill()
	d.Start()
	d.AwaitReady()
	for limit := time.Now().Add(time.Minute); len(e.got()) < 2; time.Sleep(
		20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%d webhooks were delivered, want 2", len(e.got()))
		}
	}
	want := []string{done.ID + " batch.completed", faulty.ID + " batch.failed"}

	var ofGo []string
	for _, got := range e.got() {
		c := openai.NewClient(option.WithWebhookSecret(secrets[1]), option.WithAPIKey("x"))
		event, err := c.Webhooks.Unwrap([]byte(got.Body), got.header)
		if err != nil {
			t.Errorf("the Go SDK refuses %s: %v", got.Body, err)
			continue
		}
		switch event := event.AsAny().(type) {
		case interface{ RawJSON() string }:
			var data struct {
				Type string
				Data struct{ ID string }
			}
			if err := json.Unmarshal([]byte(event.RawJSON()), &data); err != nil {
				t.Error(err)
			}
			ofGo = append(ofGo, data.Data.ID+" "+data.Type)
		default:
			t.Errorf("the Go SDK does not know %s", got.Body)
		}
	}
	if slices.Sort(ofGo); !slices.Equal(ofGo, slices.Sorted(slices.Values(want))) {
		t.Errorf("the Go SDK reads %v, want %v", ofGo, want)
	}

	received, err := json.Marshal(e.got())
	if err != nil {
		t.Fatal(err)
	}
	var node struct {
		Events []struct {
			ID, Object, Type string
			Data             struct{ ID string }
		}
		Refused []string
	}
	runNode(t, d, &node, "webhook.mjs", writeInput(t, "webhooks.json", received), secrets[0],
		secrets[1])
	var ofNode []string
	for _, event := range node.Events {
		if event.Object != "event" || !strings.HasPrefix(event.ID, "evt_") {
			t.Errorf("got %+v", event)
		}
		ofNode = append(ofNode, event.Data.ID+" "+event.Type)
	}
	slices.Sort(ofNode)
	if twice := slices.Sorted(slices.Values(append(want, want...))); !slices.Equal(ofNode,
		twice) {
		t.Errorf("the Node SDK reads %v, want %v", ofNode, twice)
	}
	if len(node.Refused) != 6 || slices.ContainsFunc(node.Refused, func(class string) bool {
		return class != "InvalidWebhookSignatureError"
	}) {
		t.Errorf("of 6 forged deliveries the Node SDK says %v", node.Refused)
	}
	if log := d.log.String(); strings.Contains(log, secrets[0]) {
		t.Error("the log has the secret")
	}
}
