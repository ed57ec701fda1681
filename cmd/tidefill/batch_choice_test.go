package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/runner/emulator"
)

// startSlow runs a daemon whose lines take a minute.
func startSlow(t *testing.T) {
	t.Helper()
	startDaemon(t, t.TempDir(), apptest.StartRunner(t, func(c *emulator.Config) {
		c.Faults.Latency = emulator.Duration(60e9)
	}))
}

func TestBatchesAreChosen(t *testing.T) {
	startSlow(t)
	if got := must(t, exitOK, "batches"); got.errors != "No batches.\n" {
		t.Errorf("list without batches: %s%s", got.out, got.errors)
	}
	must(t, exitError, "batch", "get", "--latest")
	input := writeFile(t, "in.jsonl", apptest.BatchFile(1))
	var ids []string
	for _, team := range []string{"a", "b", "a"} {
		ids = append(ids, strings.TrimSpace(must(t, exitOK, "batch", "submit", input, "--meta",
			"team="+team, "-q").out))
	}
	short := shortID(ids[1])
	for _, step := range []struct {
		args string
		want []string
	}{
		{"get -l -q", ids[2:]},
		{"get -l -q --meta team=b", ids[1:2]},
		{"get -q --meta team=a", []string{ids[2], ids[0]}},
		{"show -q " + strings.TrimPrefix(short, "batch_"), ids[1:2]},
		{"get -o name " + short + " " + ids[0] + " " + short, []string{ids[1], ids[0]}},
		{"pause -q " + ids[0] + " " + shortID(ids[2]), []string{ids[0], ids[2]}},
		{"resume -q --yes --meta team=a", []string{ids[2], ids[0]}},
		{"resume -q --yes --meta team=a", nil}, // none is paused
		{"cancel -q --yes --meta team=a", []string{ids[2], ids[0]}},
		{"pause -yq --status in_progress,validating", ids[1:2]},
	} {
		got := command(t, append([]string{"batch"}, strings.Fields(step.args)...)...)
		if want := strings.Join(append(step.want, ""), "\n"); got.out != want ||
			got.status != exitOK {
			t.Errorf("%s prints\n%s%s\nwant\n%s", step.args, got.out, got.errors, want)
		}
	}
	got := must(t, exitUsage, "batch", "cancel", "--meta", "team=b")
	if !strings.Contains(got.errors, "would cancel 1 batch; nobody can be asked here, so "+
		"add --yes") {
		t.Errorf("cancel of a selection without --yes: %s", got.errors)
	}
	if got := must(t, exitError, "batch", "delete", "nope", short); !strings.Contains(got.errors,
		"No such Batch") || got.out != "" {
		t.Errorf("ids are completed before anything is done: %s%s", got.out, got.errors)
	}
	if got := must(t, exitOK, "__complete", "batch", "get", ids[0], ""); !strings.Contains(got.out,
		ids[1]+"\tpaused, 1 line, m\n") || strings.Contains(got.out, ids[0]) {
		t.Errorf("a shell is offered\n%s", got.out)
	}
	for args, want := range map[string]string{"batch list --model": "m\n",
		"batch list --status": "in_progress\n", "batch list -o": "wide\n",
		"serve --log-level": "warn\n", "simulate --policy": "headroom\n",
		"check --set": "flowcontrol.policy=\n", "profile show": "llama-70b-a100\n"} {
		if got := must(t, exitOK, append(append([]string{"__complete"}, strings.Fields(args)...),
			"")...); !strings.Contains(got.out, want) {
			t.Errorf("%s completes to %s", args, got.out)
		}
	}
}

// An id that several batches begin with is refused, not guessed.
func TestBeginningsOfIDsAreUnique(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/batches" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, `{"data":[{"id":"batch_ab1"},{"id":"batch_ab2"}]}`)
	}))
	defer server.Close()
	t.Setenv("TIDEFILL_SERVER", server.URL)
	got := must(t, exitError, "batch", "cancel", "ab")
	if !strings.Contains(got.errors, "ab is the beginning of 2 ids, batch_ab1 and batch_ab2") {
		t.Errorf("got %s", got.errors)
	}
}

var codes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// A table fits into a terminal of 80 columns, with the longest texts that are usual.
func TestListFits(t *testing.T) {
	b := client.Batch{ID: "batch_Fps2iyiA0q6kaWEuVfFffC67", Status: "in_progress",
		Counts: client.Counts{Total: 50000, Completed: 49000, Failed: 1000}, CreatedAt: 1000,
		Tidefill: client.Extensions{Rate: 1234, ETA: 1000 + 59*60,
			Forecast: client.Forecast{Verdict: "infeasible"}}}
	for _, on := range []screen{{}, {terminal: true, colors: true}} {
		var out strings.Builder
		rows := batchRows(new(output), on, time.Unix(1000, 0))
		b.Tidefill.Paused = false
		if err := rows.add(&out, b); err != nil {
			t.Fatal(err)
		}
		b.Tidefill.Paused = true
		if err := rows.add(&out, b); err != nil {
			t.Fatal(err)
		}
		if err := rows.end(); err != nil {
			t.Fatal(err)
		}
		for row := range strings.Lines(out.String()) {
			plainRow := codes.ReplaceAllString(row, "")
			if n := utf8.RuneCountInString(strings.TrimSuffix(plainRow, "\n")); n > 80 {
				t.Errorf("a row has %d columns: %s", n, plainRow)
			}
		}
		if red := strings.Contains(out.String(), "\x1b[31minfeasible"); red != on.colors {
			t.Errorf("colors %v print %q", on.colors, out.String())
		}
		plainText := codes.ReplaceAllString(out.String(), "")
		const want = "BATCH           STATUS       PROGRESS        FAILED  RATE    ETA     " +
			"VERDICT\n" +
			"batch_Fps2iyiA  in_progress  100% of 50,000  1,000   1234/s  in 59m  infeasible\n" +
			"batch_Fps2iyiA  paused       100% of 50,000  1,000   -       in 59m  infeasible\n"
		if plainText != want {
			t.Errorf("got\n%swant\n%s", plainText, want)
		}
	}
}
