package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3/option"
)

// The example documents are in force as they are: they can be checked, shown, and used by the SDK.
func TestRegistryExamples(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "deploy", "examples", "registry")
	d := NewDaemon(t, Options{Keys: "own=" + ownKey, Admin: freeAddress(t),
		Upstreams: []string{startRunner(t, freeAddress(t), "--profile", "instant", "--model",
			"small")},
		Set: []string{"registry.dir=" + dir}})
	admin := []string{"--admin", "http://" + d.Admin}
	for _, of := range []struct {
		args []string
		want []string
	}{
		{[]string{"check", filepath.Join(dir, "templates.yaml"),
			filepath.Join(dir, "profiles.yaml")}, nil},
		{append([]string{"get", "templates"}, admin...),
			[]string{"small", "small-external", "large-prod", "v2.0.0", "deprecated"}},
		{append([]string{"get", "profiles"}, admin...),
			[]string{"interactive-night", "within-the-hour", "flex"}},
		{append([]string{"describe", "template", "small"}, admin...),
			[]string{"shared", "/v1/chat/completions"}},
		{append([]string{"describe", "profile", "interactive-night"}, admin...),
			[]string{"best_effort"}},
	} {
		out, status := d.Run(of.args...)
		if status != 0 {
			t.Errorf("tidefill %v: status %d\n%s", of.args, status, out)
		}
		for _, want := range of.want {
			if !strings.Contains(out, want) {
				t.Errorf("tidefill %v does not show %s:\n%s", of.args, want, out)
			}
		}
	}
	c := sdk(d, ownKey, option.WithMaxRetries(0))
	b := createIn(t, c, NewLines("examples", "small", 10), naming("small"))
	if b.ExpiresAt-b.CreatedAt != 24*3600 {
		t.Errorf("a batch with its own window of 24h, created at %d, expires at %d", b.CreatedAt,
			b.ExpiresAt)
	}
	waiting := createIn(t, c, NewLines("external", "small", 2), naming("small-external"))
	d.Client().Await(t, waiting.ID, 10*time.Second, func(b Batch) bool {
		return b.WaitsFor("no_runner") && strings.Contains(*b.Tidefill.Waiting,
			"small-external@v1.0.0")
	})
	if ended := endOf(t, d, b.ID); ended.RequestCounts.Completed != 10 {
		t.Errorf("the batch ended %s with %+v", ended.Status, ended.RequestCounts)
	}
}
