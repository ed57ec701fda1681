package dispatch_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// jsonLog keeps what is logged, as JSON objects.
type jsonLog struct{ logged }

// into has a dispatcher log into l.
func (l *jsonLog) into(_ *dispatch.Config, d *dispatch.Deps) {
	d.Logger = slog.New(slog.NewJSONHandler(l, nil))
}

// of returns the entries with a message.
func (l *jsonLog) of(t *testing.T, message string) (entries []map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for row := range bytes.Lines(l.out.Bytes()) {
		entry := map[string]any{}
		if err := json.Unmarshal(row, &entry); err != nil {
			t.Fatal(err)
		}
		if entry["msg"] == message {
			entries = append(entries, entry)
		}
	}
	return entries
}

func TestStartAndEndOfBatchesAreLogged(t *testing.T) {
	w, log := newWorld(t), &jsonLog{}
	w.dispatcher("a", log.into, serve(t, nil, "m", "n").URL)
	awaitAnswers(w, "m")
	secret := func(b *store.Batch) {
		b.Tenant, b.Metadata = "team", map[string]string{"note": "metadata-value"}
	}
	done := w.submit(append(chatLines(2, "m"), chatLines(5, "n")[2:]...), secret)
	w.awaitEnd(done)
	unserved := w.submit(chatLines(4, "else"), secret)
	w.awaitEnd(unserved)
	has := func(entries []map[string]any, id string, want map[string]any) {
		t.Helper()
		var of []map[string]any
		for _, e := range entries {
			if e["batch_id"] == id {
				of = append(of, e)
			}
		}
		if len(of) != 1 {
			t.Errorf("batch %s has %d entries, want 1: %v", id, len(of), of)
			return
		}
		for key, value := range want {
			if of[0][key] != value {
				t.Errorf("batch %s: %s is %v, want %v", id, key, of[0][key], value)
			}
		}
	}
	has(log.of(t, "batch started"), done, map[string]any{"tenant": "team", "model": "m",
		"models": 2.0, "lines": 5.0})
	has(log.of(t, "batch ended"), done, map[string]any{"tenant": "team", "model": "m",
		"lines": 5.0, "state": "completed", "completed": 5.0, "failed": 0.0})
	has(log.of(t, "batch ended"), unserved, map[string]any{"tenant": "team", "model": "else",
		"lines": 4.0, "state": "failed", "code": "model_not_found"})
	if ends := log.of(t, "batch ended"); ends[0]["duration"].(float64) <= 0 {
		t.Errorf("the duration is %v", ends[0]["duration"])
	}
	for _, secret := range []string{"metadata-value", "say line"} {
		if bytes.Contains(log.out.Bytes(), []byte(secret)) {
			t.Errorf("the log has %q", secret)
		}
	}
}
