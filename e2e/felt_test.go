package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// What users felt survives a daemon that is killed: it continues the hour.
func TestHistoryOfWhatUsersFeltSurvivesAKill(t *testing.T) {
	t.Parallel()
	d, _ := newInline(t, 1, "flowcontrol.policy=fixed", "flowcontrol.slo.ttft=1m",
		"flowcontrol.slo.tpot=1ns", "dispatch.tuning.learned_every=200ms")
	type row struct {
		Requests    int
		Lines       int
		BatchTokens int `json:"batch_tokens"`
		Tokens      struct{ Late float64 }
	}
	total := func() row {
		text, status := d.Run("explain", "--since", "1h", "-o", "json", "--admin",
			"http://"+d.Admin)
		var list struct {
			Data []struct {
				Pool  string
				Total row
			}
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil || status != 0 ||
			len(list.Data) != 1 || !strings.HasPrefix(list.Data[0].Pool, "m") {
			t.Fatalf("explain --since 1h prints (%v, status %d) %s", err, status, text)
		}
		return list.Data[0].Total
	}
	ask := func(n int) {
		t.Helper()
		const body = `{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":8,` +
			`"stream":true,"ignore_eos":true}`
		for range n {
			if status, _, text := post(t, d.URL, "/v1/chat/completions", body,
				ownKey); status != http.StatusOK {
				t.Fatalf("status %d: %s", status, text)
			}
		}
	}
	c := d.Client()
	lines := NewLines("felt", "m", 12)
	b := c.Submit(t, lines.Content, "")
	c.AwaitEnd(t, b.ID, 60*time.Second)
	ask(30)
	await(t, 20*time.Second, "30 requests and 12 lines in the history", func() bool {
		now := total()
		return now.Requests >= 30 && now.Lines == 12 && now.BatchTokens > 0 && now.Tokens.Late > 0
	})
	before := total()

	d.Restart() // kill -9
	if after := total(); after != before {
		t.Errorf("after a kill the history is %+v, was %+v", after, before)
	}
	awaitInline(t, d, "m")
	ask(20)
	await(t, 20*time.Second, "20 requests more", func() bool {
		now := total()
		return now.Requests >= before.Requests+20 && now.Lines == 12
	})

	text, _ := d.Run("explain", "--since", "1h", "--admin", "http://"+d.Admin)
	if !regexp.MustCompile(`(?m)^In the last hour `).MatchString(text) || !regexp.MustCompile(
		fmt.Sprintf(`(?m)^  all +%d `, total().Requests)).MatchString(text) {
		t.Errorf("explain --since 1h prints:\n%s", text)
	}
	for row := range strings.SplitSeq(text, "\n") {
		if len([]rune(row)) > 80 {
			t.Errorf("%d columns: %s", len([]rune(row)), row)
		}
	}

	page := NewBrowser(t)
	page.Open(t, "http://"+d.Admin+"/console")
	page.Await(t, time.Minute, "#felt .sentence", "In the last 7 days", "does not estimate")
	page.Await(t, time.Minute, "#felt figcaption", "Late first tokens", "beside lines")
	page.Resize(t, 360, 780)
	if got := page.Evaluate(t, "[...document.querySelectorAll('#felt path.users')].every("+
		"(path) => path.getAttribute('d').startsWith('M')) && "+
		"document.documentElement.scrollWidth"); got != "360" {
		t.Errorf("a chart is empty, or the page is too wide: %s", got)
	}
	if faults := page.Faults(); len(faults) > 0 {
		t.Errorf("the page reports %q", faults)
	}
}
