package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidefill/tidefill/client"
)

// usagePages are what startFakeUsage has by default.
var usagePages = [][]client.UsageBucket{{
	{StartTime: 1789862400, Results: []client.Used{
		usageOf("team-a", "llama-3.1-8b", "batch", 12, 511_090),
		usageOf("research", "qwen", "batch", 10, 5_000)}},
	{StartTime: 1789948800},
}, {
	{StartTime: 1790035200, Results: []client.Used{
		usageOf("research", "llama-3.1-8b", "critical", 1_234_567, 21_400_310_224),
		usageOf("research", "qwen", "batch", 10, 5_000)}},
}}

func usageOf(tenant, model, class string, requests, tokens int64) client.Used {
	u := client.Used{Requests: requests, InputTokens: tokens, InputCachedTokens: tokens / 2,
		OutputTokens: tokens / 10, Tenant: &tenant, Model: &model}
	u.Tidefill.FailedRequests, u.Tidefill.ReasoningTokens = requests/100, 7
	u.Tidefill.Class = &class
	return u
}

// startFakeUsage serves these pages, makes this the default of commands, and returns the queries
// that it was asked. Results have the names that a query groups by.
func startFakeUsage(t *testing.T, pages ...[]client.UsageBucket) (queries *[]url.Values) {
	t.Helper()
	queries = new([]url.Values)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/organization/usage/completions" {
			http.NotFound(w, r)
			return
		}
		q := r.URL.Query()
		*queries = append(*queries, q)
		at, _ := strconv.Atoi(q.Get("page"))
		page := struct {
			Data []client.UsageBucket `json:"data"`
			Next *string              `json:"next_page"`
		}{Data: pages[at]}
		if next := strconv.Itoa(at + 1); at+1 < len(pages) {
			page.Next = &next
		}
		page.Data = slices.Clone(page.Data)
		for i := range page.Data {
			page.Data[i].Results = slices.Clone(page.Data[i].Results)
			for j := range page.Data[i].Results {
				u := &page.Data[i].Results[j]
				for name, of := range map[string]**string{"project_id": &u.Tenant,
					"model": &u.Model, "class": &u.Tidefill.Class} {
					if !slices.Contains(q["group_by"], name) {
						*of = nil
					}
				}
			}
		}
		json.NewEncoder(w).Encode(page)
	}))
	t.Cleanup(server.Close)
	t.Setenv("TIDEFILL_SERVER", server.URL)
	return queries
}

func TestUsageTable(t *testing.T) {
	startFakeUsage(t, usagePages...)
	for _, c := range []struct{ flags, want string }{
		{"", `
TENANT    MODEL         REQUESTS   FAILED  INPUT   CACHED  OUTPUT
research  llama-3.1-8b  1,234,567  12,345  21.4 G  10.7 G  2.1 G
team-a    llama-3.1-8b  12         0       511.1 k 255.5 k 51.1 k
research  qwen          20         0       10.0 k  5.0 k   1.0 k
all                     1,234,599  12,345  21.4 G  10.7 G  2.1 G
`},
		{"-o wide", `
TENANT    MODEL         REQUESTS   FAILED  INPUT          CACHED         OUTPUT        REASONING
research  llama-3.1-8b  1,234,567  12,345  21,400,310,224 10,700,155,112 2,140,031,022 7
team-a    llama-3.1-8b  12         0       511,090        255,545        51,109        7
research  qwen          20         0       10,000         5,000          1,000         14
all                     1,234,599  12,345  21,400,831,314 10,700,415,657 2,140,083,131 28
`},
		{"-n 1", `
TENANT    MODEL         REQUESTS   FAILED  INPUT   CACHED  OUTPUT
research  llama-3.1-8b  1,234,567  12,345  21.4 G  10.7 G  2.1 G
all                     1,234,599  12,345  21.4 G  10.7 G  2.1 G
1 of 3; --limit 0 shows all
`},
		{"--by day", `
DAY (UTC)   REQUESTS   FAILED  INPUT   CACHED  OUTPUT
2026-09-20  22         0      516.1 k 258.0 k 51.6 k
2026-09-22  1,234,577  12,345  21.4 G  10.7 G  2.1 G
all         1,234,599  12,345  21.4 G  10.7 G  2.1 G
`},
		{"--by hour,class", `
HOUR (UTC)   CLASS     REQUESTS   FAILED  INPUT   CACHED  OUTPUT
09-20 00:00  batch     22         0      516.1 k 258.0 k 51.6 k
09-22 00:00  critical  1,234,567  12,345  21.4 G  10.7 G  2.1 G
09-22 00:00  batch     10         0       5.0 k   2.5 k   500
all                    1,234,599  12,345  21.4 G  10.7 G  2.1 G
`},
		{"--by tenant,model -q", "research llama-3.1-8b\nteam-a llama-3.1-8b\nresearch qwen"},
	} {
		got := must(t, exitOK, append([]string{"usage"}, strings.Fields(c.flags)...)...)
		if same := strings.Join(strings.Fields(got.out+got.errors), " "); same !=
			strings.Join(strings.Fields(c.want), " ") {
			t.Errorf("usage %s:\n%s%s", c.flags, got.out, got.errors)
		}
	}
	if names := must(t, exitOK, "usage", "-q", "--by", "model").out; names !=
		"llama-3.1-8b\nqwen\n" {
		t.Errorf("models: %q", names)
	}
}

// usageAsJSON returns the objects that usage prints.
func usageAsJSON(t *testing.T, flags ...string) (rows []map[string]any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(must(t, exitOK,
		append([]string{"usage", "--json"}, flags...)...).out))
	for decoder.More() {
		var row map[string]any
		if err := decoder.Decode(&row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

func TestUsageAsJSON(t *testing.T) {
	startFakeUsage(t, usagePages...)
	rows := usageAsJSON(t)
	if len(rows) != 3 {
		t.Fatalf("got %v, want 3 rows and no sum", rows)
	}
	want := map[string]any{"tenant": "team-a", "model": "llama-3.1-8b", "requests": 12.0,
		"failed_requests": 0.0, "input_tokens": 511090.0, "input_cached_tokens": 255545.0,
		"output_tokens": 51109.0, "reasoning_tokens": 7.0}
	if fmt.Sprint(rows[1]) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", rows[1], want)
	}
	days := usageAsJSON(t, "--by", "day")
	if len(days) != 2 || days[0]["start_time"] != 1789862400.0 {
		t.Errorf("by day: %v", days)
	}
}

// Tables keep to 80 columns, and names that are shortened keep their beginnings and ends.
func TestUsageKeepsTo80Columns(t *testing.T) {
	long := usageOf("a-tenant-with-a-name-of-many-letters",
		"meta-llama/Llama-3.1-405B-Instruct-FP8", "sheddable", 1_234_567, 999_940_000_000)
	startFakeUsage(t, []client.UsageBucket{{StartTime: 1789862400, Results: []client.Used{long,
		usageOf("b", "m\x1b[2J", "batch", 1, 1)}}})
	for _, by := range []string{"tenant,model", "tenant", "model,hour", "model,class"} {
		got := must(t, exitOK, "usage", "--by", by).out
		for row := range strings.SplitSeq(got, "\n") {
			if utf8.RuneCountInString(row) > 80 {
				t.Errorf("--by %s: %d columns: %s", by, utf8.RuneCountInString(row), row)
			}
		}
		if strings.Contains(got, "\x1b") {
			t.Errorf("a name controls the terminal: %q", got)
		}
	}
	got := must(t, exitOK, "usage").out
	if !strings.Contains(got, "\na-tenan…letters ") || !strings.Contains(got, " meta-ll…uct-FP8 ") {
		t.Errorf("got:\n%s", got)
	}
	if wide := must(t, exitOK, "usage", "-o", "wide").out; !strings.Contains(wide,
		"meta-llama/Llama-3.1-405B-Instruct-FP8") {
		t.Errorf("wide:\n%s", wide)
	}
}

func TestUsageAsksForWhatIsGiven(t *testing.T) {
	queries := startFakeUsage(t, nil, nil)
	got := must(t, exitOK, "usage")
	if got.out != "" || got.errors != "No usage.\n" {
		t.Errorf("without usage: %q, %q", got.out, got.errors)
	}
	first := (*queries)[0]
	since, err := strconv.ParseInt(first.Get("start_time"), 10, 64)
	if week := time.Since(time.Unix(since, 0)) - 7*24*time.Hour; err != nil || week < 0 ||
		week > time.Minute || first.Has("end_time") || first.Get("bucket_width") != "1d" {
		t.Errorf("by default: %v", first)
	}
	if second := (*queries)[1]; len(*queries) != 2 || second.Get("page") != "1" ||
		second.Get("start_time") != first.Get("start_time") {
		t.Errorf("the second page: %v", *queries)
	}
	*queries = nil
	must(t, exitOK, "usage", "--since", "2026-11-01", "--until", "2026-11-02T12:00:00+01:00",
		"--by", "hour,class", "-m", "m,n")
	want := url.Values{"start_time": {"1793491200"}, "end_time": {"1793617200"}, "limit": {"168"},
		"bucket_width": {"1h"}, "models": {"m", "n"}, "group_by": {"class"}}
	if got := (*queries)[0]; got.Encode() != want.Encode() {
		t.Errorf("asked for %v, want %v", got, want)
	}
	for flags, words := range map[string]string{
		"--since yesterday":                     "give a time until now such as 24h or 7d",
		"--since -1h":                           "give a time until now such as",
		"--by tenant,user":                      `--by has "user"; give some of tenant, model`,
		"--by day,hour":                         "give one of them",
		"--since 2d --until 3d":                 "--until 3d is not after --since 2d",
		"--limit -1":                            "give 0 for all",
		"--since 2026-11-02 --until 2026-11-02": "is not after",
		"a-word":                                "unknown command",
	} {
		if got := must(t, exitUsage, append([]string{"usage"},
			strings.Fields(flags)...)...); !strings.Contains(got.errors, words) {
			t.Errorf("usage %s: %s", flags, got.errors)
		}
	}
	t.Setenv("TIDEFILL_SERVER", "http://127.0.0.1:1")
	if got := must(t, exitError, "usage"); !strings.Contains(got.errors, "list usage: connect to") {
		t.Errorf("without a daemon: %s", got.errors)
	}
}
