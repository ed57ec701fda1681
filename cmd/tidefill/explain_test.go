package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/runner/emulator"
)

// startExplained runs a daemon with the default policy before an emulated runner, and
// makes its admin address the default of explain.
func startExplained(t *testing.T, model string) *app.App {
	t.Helper()
	c := emulator.DefaultConfig()
	c.Models = []string{model}
	c.Profile, c.Speedup = "llama-70b-a100", 5
	cfg := apptest.Config(t.TempDir(), apptest.StartEngine(t, c))
	cfg.FlowControl.Policy = flowcontrol.DefaultConfig().Policy
	a, _ := startDaemonWith(t, cfg, app.Options{})
	t.Setenv("TIDEFILL_ADMIN", a.AdminURL())
	return a
}

// awaitExplained repeats explain until it prints all of the texts.
func awaitExplained(t *testing.T, args []string, want ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		got := must(t, exitOK, append([]string{"explain"}, args...)...).out
		missing := ""
		for _, w := range want {
			if !strings.Contains(got, w) {
				missing = w
			}
		}
		if missing == "" {
			return got
		}
		select {
		case <-ctx.Done():
			t.Fatalf("explain does not print %q:\n%s", missing, got)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestExplain(t *testing.T) {
	const model = "meta/small 7B\x1b[31m"
	startExplained(t, model)
	text := awaitExplained(t, nil, "meta/small 7B", "policy headroom, 1 runner",
		"at most 1.15 times", "users feel", "metrics of 1 of 1 runner",
		"nothing_ready: No line waits.", "INTERACTIVE")
	if strings.Contains(text, "\x1b") {
		t.Errorf("a model's name controls the terminal: %q", text)
	}
	one := must(t, exitOK, "explain", model, "--json").out
	var pool struct {
		Name     string
		Decision struct{ Terms []any }
	}
	if err := json.Unmarshal([]byte(one), &pool); err != nil || pool.Name != model ||
		len(pool.Decision.Terms) < 20 {
		t.Errorf("--json prints (%v) %.300s", err, one)
	}
	if all := must(t, exitOK, "explain", "--json").out; !strings.Contains(all, `"reasons":{`) {
		t.Errorf("--json of all pools prints %.300s", all)
	}
	awaitExplained(t, []string{model, "--since", "1m"}, "OBJECTIVE", "nothing_ready")
	since := must(t, exitOK, "explain", "--since", "1m", "--json").out
	if !strings.Contains(since, `"terms":[`) || !strings.Contains(since, `"has_more":false`) {
		t.Errorf("--since --json prints %.300s", since)
	}

	ctx, cancel := context.WithCancel(t.Context())
	var out watched
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"explain", "--watch"}, strings.NewReader(""), &out, &out)
	}()
	awaitWatched(t, &out, 2)
	cancel()
	if status := <-ended; status != exitInterrupted {
		t.Errorf("--watch ended with status %d", status)
	}
}

func TestExplainMistakes(t *testing.T) {
	a := startExplained(t, "m")
	awaitExplained(t, nil, "policy headroom")
	for _, test := range []struct {
		status int
		args   []string
		want   string
	}{
		{exitError, []string{"nope"}, `no pool "nope"`},
		{exitError, []string{"nope", "--since", "1m"}, `The pools are: "m"`},
		{exitError, []string{"--admin", "http://127.0.0.1:1"}, "admin_listen"},
		{exitError, []string{"--admin", a.URL()}, "not that of the API"},
		{exitUsage, []string{"--admin", "nonsense"}, "is not a URL"},
		{exitUsage, []string{"--since", "-1m"}, "give a time above 0"},
		{exitUsage, []string{"--since", "91d"}, "at most 90d"},
		{exitUsage, []string{"--since", "week"}, "such as 10m, 24h or 7d"},
		{exitUsage, []string{"--since", "1m", "--watch"}, "exclude each other"},
		{exitUsage, []string{"a", "b"}, "at most 1"},
	} {
		if got := must(t, test.status, append([]string{"explain"}, test.args...)...); !strings.
			Contains(got.errors, test.want) {
			t.Errorf("%q: %s lacks %q", test.args, got.errors, test.want)
		}
	}
}
