package api

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// memoryLedger is a ledger that holds these hours.
type memoryLedger []store.Used

func (l memoryLedger) Usage(_ context.Context, q store.UsageQuery) (sums []store.Used, err error) {
	has := func(names []string, name string) bool {
		return len(names) == 0 || slices.Contains(names, name)
	}
	at := map[store.Used]int{}
	for _, u := range l {
		if !has(q.Tenants, u.Tenant) || !has(q.Models, u.Model) || u.Hour.Before(q.From) ||
			!u.Hour.Before(q.Until) {
			continue
		}
		group := store.Used{Hour: u.Hour.Truncate(q.Width)}
		if q.ByTenant {
			group.Tenant = u.Tenant
		}
		if q.ByModel {
			group.Model = u.Model
		}
		if q.ByClass {
			group.Class = u.Class
		}
		i, known := at[group]
		if !known {
			i = len(sums)
			at[group] = i
			sums = append(sums, group)
		}
		sums[i].Requests += u.Requests
		sums[i].Failed += u.Failed
		sums[i].Tokens.Add(u.Tokens)
	}
	slices.SortFunc(sums, func(a, b store.Used) int {
		return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.Tenant, b.Tenant),
			cmp.Compare(a.Model, b.Model), cmp.Compare(a.Class, b.Class))
	})
	return sums, nil
}

// used returns an hour in which n requests had 10 tokens each in and 3 out.
func used(hour, tenant, model, class string, n int64) store.Used {
	at, err := time.Parse("2006-01-02T15", hour)
	if err != nil {
		panic(err)
	}
	return store.Used{Hour: at, Tenant: tenant, Model: model, Class: class, Requests: n,
		Failed: n / 4, Tokens: batchfile.Usage{InputTokens: 10 * n, OutputTokens: 3 * n,
			TotalTokens: 13 * n, CachedTokens: 4 * n, ReasoningTokens: n}}
}

// usageHours are the hours of newUsage, before 2026-09-21 14:13:20, the time of its clock.
var usageHours = memoryLedger{
	used("2026-09-19T23", "a", "m", "batch", 1),
	used("2026-09-20T00", "a", "m", "batch", 2), used("2026-09-20T00", "a", "m", "chat", 4),
	used("2026-09-20T00", "b", "m", "batch", 8), used("2026-09-20T05", "a", "n", "batch", 16),
	used("2026-09-20T05", "a", "m", "agents", 32), used("2026-09-21T14", "b", "n", "batch", 64),
}

const usageURL = "/v1/organization/usage/completions"

// newUsage serves usageHours for the keys of newTenants.
func newUsage(t *testing.T, hours memoryLedger) *service {
	t.Helper()
	keys := tenantKeys(t)
	return newService(t, func(_ *Config, d *Deps) { d.Keys, d.Store.Ledger = keys, hours })
}

// requests writes the buckets of an answer as "day/hour: groups", one a word: the names that it is
// grouped by and the number of requests.
func requests(t *testing.T, answer map[string]any) string {
	t.Helper()
	var text []string
	for _, b := range answer["data"].([]any) {
		bucket := b.(map[string]any)
		at := time.Unix(int64(bucket["start_time"].(float64)), 0).UTC().Format("02T15")
		var groups []string
		for _, r := range bucket["results"].([]any) {
			result := r.(map[string]any)
			details := result["tidefill"].(map[string]any)
			group := ""
			for _, name := range []any{result["project_id"], result["model"], result["batch"],
				details["class"]} {
				if name != nil {
					group += fmt.Sprint(name, "/")
				}
			}
			groups = append(groups, group+fmt.Sprint(result["num_model_requests"]))
		}
		text = append(text, at+": "+strings.Join(groups, " "))
	}
	return strings.Join(text, "; ")
}

func TestUsageIsShownAsOpenAIShowsIt(t *testing.T) {
	s := newUsage(t, usageHours)
	got := s.get(usageURL+"?start_time=2026-09-20T00:00:00Z&end_time=2026-09-22T00:00:00Z"+
		"&group_by[]=model&models[]=n&limit=1", as("ops-admin", "")...).ok()
	next, _ := got["next_page"].(string)
	want := map[string]any{"object": "page", "has_more": true, "next_page": next, "data": []any{
		map[string]any{"object": "bucket", "start_time": 1789862400.0, "end_time": 1789948800.0,
			"results": []any{map[string]any{
				"object":       "organization.usage.completions.result",
				"input_tokens": 160.0, "output_tokens": 48.0, "input_cached_tokens": 64.0,
				"input_audio_tokens": 0.0, "output_audio_tokens": 0.0, "num_model_requests": 16.0,
				"project_id": nil, "user_id": nil, "api_key_id": nil, "model": "n", "batch": nil,
				"service_tier": nil, "tidefill": map[string]any{"failed_requests": 4.0,
					"reasoning_tokens": 16.0, "class": nil},
			}}},
	}}
	if diff := gocmp.Diff(want, got); diff != "" || next == "" {
		t.Errorf("the first page (-want +got):\n%s", diff)
	}
	last := s.get(usageURL+"?start_time=2026-09-20T00:00:00Z&page="+next,
		as("ops-admin", "")...).ok()
	if last["has_more"] != false || last["next_page"] != nil || len(last["data"].([]any)) != 1 {
		t.Errorf("the last page is %v", last)
	}
}

func TestUsageQueries(t *testing.T) {
	s := newUsage(t, usageHours)
	all := "start_time=2026-09-19T00:00:00Z"
	for _, c := range []struct{ key, tenant, query, want string }{
		{"ops-admin", "", all, "19T00: 1; 20T00: 62; 21T00: 64"},
		{"ops-admin", "", all + "&limit=2", "19T00: 1; 20T00: 62"},
		// Buckets begin where the query does, and end where it ends.
		{"ops-admin", "", "start_time=2026-09-19T23:59:59Z&end_time=2026-09-20T04:30:00Z",
			"19T23: 1; 20T00: 14"},
		{"ops-admin", "", "start_time=2026-09-20T00:00:00Z&end_time=2026-09-20T05:00:00Z",
			"20T00: 14"},
		{"ops-admin", "", "start_time=2026-09-20T01:00:00Z&end_time=2026-09-20T05:00:01Z",
			"20T01: 48"},
		{"ops-admin", "", "bucket_width=1h&limit=3&start_time=2026-09-20T04:00:00Z",
			"20T04: ; 20T05: 48; 20T06: "},
		{"ops-admin", "", "start_time=1789862400&end_time=1789866000", "20T00: 14"},
		// The hour that is not over is part of it, those to come are not.
		{"ops-admin", "", "bucket_width=1h&start_time=2026-09-21T13:00:00Z", "21T13: ; 21T14: 64"},
		{"ops-admin", "", "start_time=2026-09-21T00:00:00Z&end_time=2027-01-01T00:00:00Z",
			"21T00: 64"},
		{"ops-admin", "", "start_time=2026-09-22T00:00:00Z", ""},
		{"ops-admin", "", all + "&group_by=project_id", "19T00: a/1; 20T00: a/54 b/8; 21T00: b/64"},
		{"ops-admin", "", all + "&group_by[]=model&group_by[]=project_id",
			"19T00: a/m/1; 20T00: a/m/38 a/n/16 b/m/8; 21T00: b/n/64"},
		{"ops-admin", "", all + "&group_by=batch",
			"19T00: true/1; 20T00: false/36 true/26; 21T00: true/64"},
		{"ops-admin", "", all + "&group_by=batch,class",
			"19T00: true/batch/1; 20T00: false/agents/32 true/batch/26 false/chat/4; " +
				"21T00: true/batch/64"},
		{"ops-admin", "", all + "&batch=true&group_by=project_id",
			"19T00: a/1; 20T00: a/18 b/8; 21T00: b/64"},
		{"ops-admin", "", all + "&batch=false&group_by=", "19T00: ; 20T00: 36; 21T00: "},
		{"ops-admin", "", all + "&models[]=n&models=none", "19T00: ; 20T00: 16; 21T00: 64"},
		{"ops-admin", "", all + "&project_ids[]=b", "19T00: ; 20T00: 8; 21T00: 64"},
		{"ops-admin", "", all + "&project_ids[]=b&project_ids[]=a&unknown=7&project_ids=",
			"19T00: 1; 20T00: 62; 21T00: 64"},
		// Others than admins see what is their tenant's, and so does an admin who acts for it.
		{"a-user", "", all + "&group_by=project_id", "19T00: a/1; 20T00: a/54; 21T00: "},
		{"a-viewer", "", all, "19T00: 1; 20T00: 54; 21T00: "},
		{"a-user", "", all + "&project_ids=b", "19T00: ; 20T00: ; 21T00: "},
		{"a-user", "", all + "&project_ids=b&project_ids=a", "19T00: 1; 20T00: 54; 21T00: "},
		{"b-user", "", all + "&models=n", "19T00: ; 20T00: ; 21T00: 64"},
		{"ops-admin", "a", all, "19T00: 1; 20T00: 54; 21T00: "},
		{"ops-admin", "ops", all, "19T00: ; 20T00: ; 21T00: "},
		{"ops-admin", "a", all + "&project_ids=b", "19T00: ; 20T00: ; 21T00: "},
	} {
		answer := s.get(usageURL+"?"+c.query, as(c.key, c.tenant)...).ok()
		if got := requests(t, answer); got != c.want {
			t.Errorf("%s %s?%s:\ngot  %s\nwant %s", c.key, c.tenant, c.query, got, c.want)
		}
	}
	s.get(usageURL+"?"+all, as("a-user", "b")...).refused(403, "", "insufficient_permissions")
	s.get(usageURL+"?"+all).refused(401, "", "")
}

func TestUsageWithoutKeysIsThatOfAllTenants(t *testing.T) {
	s := newService(t, func(_ *Config, d *Deps) { d.Store.Ledger = usageHours })
	answer := s.get(usageURL + "?start_time=2026-09-19T00:00:00Z").ok()
	if got := requests(t, answer); got != "19T00: 1; 20T00: 62; 21T00: 64" {
		t.Errorf("got %s", got)
	}
}

// The answer begins where the ledger does, and has no pages of empty buckets before.
func TestUsageBeginsWithTheLedger(t *testing.T) {
	s := newUsage(t, usageHours)
	answer := s.get(usageURL+"?start_time=0&limit=1", as("ops-admin", "")...).ok()
	first := answer["data"].([]any)[0].(map[string]any)["start_time"].(float64)
	if want := s.clock.now().Truncate(time.Hour).Add(-store.UsageRetention).Unix(); first !=
		float64(want) {
		t.Errorf("the first bucket begins at %v, want %d", first, want)
	}
}

func TestUsageQueriesThatAreRefused(t *testing.T) {
	s := newUsage(t, usageHours)
	many := "start_time=1" + strings.Repeat("&models=m", maxUsageNames+1)
	for _, c := range []struct{ query, param, code, words string }{
		{"", "start_time", "missing_required_parameter", "Missing"},
		{"start_time=", "start_time", "missing_required_parameter", "Missing"},
		{"start_time=1.5", "start_time", "invalid_value", "neither Unix seconds nor"},
		{"start_time=-1", "start_time", "invalid_value", "neither Unix seconds nor"},
		{"start_time=99999999999999999999", "start_time", "invalid_value", "neither"},
		{"start_time=yesterday", "start_time", "invalid_value", "'yesterday'"},
		{"start_time=10&end_time=x", "end_time", "invalid_value", "neither"},
		{"start_time=10&end_time=10", "end_time", "invalid_value", "'10' is not after"},
		{"start_time=10&end_time=0", "end_time", "invalid_value", "'0' is not after"},
		{"start_time=1&bucket_width=1m", "bucket_width", "invalid_value", "counted by the hour"},
		{"start_time=1&bucket_width=day", "bucket_width", "invalid_value", "'day' is neither"},
		{"start_time=1&limit=0", "limit", "invalid_value", "from 1 to 31"},
		{"start_time=1&limit=32", "limit", "invalid_value", "from 1 to 31"},
		{"start_time=1&limit=169&bucket_width=1h", "limit", "invalid_value", "from 1 to 168"},
		{"start_time=1&batch=1", "batch", "invalid_value", "'1' is neither"},
		{"start_time=1&group_by[]=user_id", "group_by", "invalid_value",
			"'user_id'; use 'project_id', 'model', 'batch' or 'class'"},
		{"start_time=1&group_by=api_key_id", "group_by", "invalid_value", "'api_key_id'"},
		{"start_time=1&group_by=model,service_tier", "group_by", "invalid_value", "'service_tier'"},
		{"start_time=1&user_ids[]=x", "user_ids", "invalid_value", "by tenant and model"},
		{"start_time=1&api_key_ids=x", "api_key_ids", "invalid_value", "by tenant and model"},
		{many, "models", "invalid_value", "the limit is 100"},
		{"start_time=1&page=x", "page", "invalid_value", "'x' is not the 'next_page'"},
		{"start_time=1&page=" + strings.Repeat("A", 5000), "page", "invalid_value", "AAA"},
	} {
		s.get(usageURL+"?"+c.query, as("a-user", "")...).refused(400, c.param, c.code, c.words)
	}
	page := s.get(usageURL+"?start_time=2026-09-19T00:00:00Z&limit=1",
		as("a-user", "")...).ok()["next_page"].(string)
	for _, other := range []string{"start_time=2026-09-18T00:00:00Z",
		"start_time=2026-09-19T00:00:00Z&bucket_width=1h"} {
		s.get(usageURL+"?"+other+"&page="+page, as("a-user", "")...).refused(400, "page",
			"invalid_value", "is not the 'next_page' of a query with this")
	}
	s.do("POST", usageURL, nil, as("a-user", "")...).refused(405, "", "method_not_allowed")
}

// walkUsage reads all pages of a query.
func walkUsage(s *service, query url.Values) (buckets []any) {
	s.t.Helper()
	for {
		answer := s.get(usageURL+"?"+query.Encode(), as("ops-admin", "")...).ok()
		data := answer["data"].([]any)
		if buckets = append(buckets, data...); answer["has_more"] == false {
			return buckets
		}
		if len(data) == 0 {
			s.t.Fatalf("%v: an empty page is not the last", query)
		}
		query.Set("page", answer["next_page"].(string))
	}
}

// Whatever the size of the pages, all pages together have the same buckets, without a gap, and
// their sums are those of one bucket.
func TestUsageOfAllPagesIsThatOfOne(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	var hours memoryLedger
	for range 300 {
		u := used("2026-09-21T14", string(rune('a'+random.IntN(3))),
			string(rune('m'+random.IntN(3))), []string{"batch", "chat", "agents"}[random.IntN(3)],
			1+random.Int64N(9))
		u.Hour = u.Hour.Add(-time.Duration(random.IntN(24*9)) * time.Hour)
		hours = append(hours, u)
	}
	s := newUsage(t, hours)
	now := s.clock.now()
	for i := range 40 {
		from := now.Add(-time.Duration(1+random.IntN(9*24*3600)) * time.Second)
		until := from.Add(time.Duration(1+random.IntN(9*24*3600)) * time.Second)
		query := url.Values{"start_time": {strconv.FormatInt(from.Unix(), 10)},
			"end_time":     {strconv.FormatInt(until.Unix(), 10)},
			"bucket_width": {[]string{"1h", "1d"}[random.IntN(2)]}}
		for _, group := range []string{"project_id", "model", "batch", "class"} {
			if random.IntN(2) == 0 {
				query.Add("group_by[]", group)
			}
		}
		most := map[string]int{"1h": 168, "1d": 31}[query.Get("bucket_width")]
		query.Set("limit", strconv.Itoa(most))
		whole := walkUsage(s, query)
		query.Del("page")
		query.Set("limit", strconv.Itoa(1+random.IntN(12)))
		parts := walkUsage(s, query)
		if diff := gocmp.Diff(whole, parts); diff != "" {
			t.Fatalf("%d: %v: pages of another size (-want +got):\n%s", i, query, diff)
		}
		first := from.Truncate(time.Hour).Unix()
		got, at := int64(0), first
		for _, b := range whole {
			bucket := b.(map[string]any)
			if int64(bucket["start_time"].(float64)) != at {
				t.Fatalf("%d: %v: a bucket begins at %v, want %d", i, query, bucket, at)
			}
			at = int64(bucket["end_time"].(float64))
			for _, r := range bucket["results"].([]any) {
				got += int64(r.(map[string]any)["input_tokens"].(float64))
			}
		}
		want := int64(0)
		for _, u := range hours {
			if u.Hour.Unix() >= first && u.Hour.Unix() < at {
				want += u.Tokens.InputTokens
			}
		}
		end := min(until.Unix(), now.Truncate(time.Hour).Unix()+3600)
		if got != want || at < end || at >= end+3600 {
			t.Fatalf("%d: %v: got %d tokens until %d, want %d until %d", i, query, got, at, want,
				end)
		}
	}
}

// A page with very many groups ends before its number of buckets, and the next one goes on.
func TestUsagePagesAreBounded(t *testing.T) {
	var hours memoryLedger
	for i := range 1000 {
		for h := range 40 {
			u := used("2026-09-20T00", "t"+strconv.Itoa(i), "m", "batch", 1)
			u.Hour = u.Hour.Add(time.Duration(h) * time.Hour)
			hours = append(hours, u)
		}
	}
	s := newUsage(t, hours)
	query := url.Values{"start_time": {"2026-09-20T00:00:00Z"}, "bucket_width": {"1h"},
		"end_time": {"2026-09-21T14:00:00Z"}, "limit": {"168"}, "group_by": {"project_id"}}
	first := s.get(usageURL+"?"+query.Encode(), as("ops-admin", "")...).ok()["data"].([]any)
	if most := maxUsageResults/1000 + bucketsAtOnce; len(first) > most {
		t.Errorf("the first page has %d buckets of 1000 results, want at most %d", len(first), most)
	}
	if all := walkUsage(s, query); len(all) != 38 {
		t.Errorf("all pages have %d buckets, want 38", len(all))
	}
}

type brokenLedger struct{}

func (brokenLedger) Usage(context.Context, store.UsageQuery) ([]store.Used, error) {
	return nil, store.ErrUnavailable
}

func TestUsageWithoutTheStore(t *testing.T) {
	s := newService(t, func(_ *Config, d *Deps) { d.Store.Ledger = brokenLedger{} })
	s.get(usageURL+"?start_time=1").refused(503, "", "store_unavailable")
}

// Whatever is sent, the answer is 400 or a page within its limits.
func FuzzUsageQuery(f *testing.F) {
	for _, query := range []string{"start_time=1", "start_time=1789862400&page=AAAA",
		"start_time=2026-09-19T00:00:00Z&end_time=2026-09-20T00:00:00Z&group_by[]=batch&limit=3",
		"start_time=9999-12-31T23:59:59Z&bucket_width=1h&batch=true",
		"start_time=0000-01-01T00:00:00Z",
		"start_time=1&end_time=253402300799&project_ids=a,b&models[]=%00"} {
		f.Add(query)
	}
	now := time.Unix(1_790_000_000, 0)
	f.Fuzz(func(t *testing.T, query string) {
		v, _ := url.ParseQuery(query) // as net/http does
		q, err := readUsageQuery(v, now)
		if err != nil {
			if answer := answerTo(err); answer.Status != http.StatusBadRequest {
				t.Fatalf("%q: %v is answered %d", query, err, answer.Status)
			}
			return
		}
		if q.limit < 1 || q.limit > 168 || q.Width%time.Hour != 0 ||
			q.From.Before(now.Add(-store.UsageRetention-time.Hour)) ||
			q.Until.After(now.Add(time.Hour)) ||
			len(q.Tenants)+len(q.Models) > 2*maxUsageNames {
			t.Fatalf("%q is read as %+v", query, q)
		}
		for _, at := range []time.Time{q.From, q.Until} {
			if !at.Equal(at.Truncate(time.Hour)) {
				t.Fatalf("%q reads parts of hours: %v", query, at)
			}
		}
		if q.From.Before(q.Until) && !q.endOf(q.From, 1).After(q.From) {
			t.Fatalf("%q does not go on after %v", query, q.From)
		}
	})
}

// A cursor is read as it was written, and no other text is a cursor.
func FuzzUsageCursor(f *testing.F) {
	q, err := readUsageQuery(url.Values{"start_time": {"1789000000"}}, time.Unix(1_790_000_000, 0))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(q.cursor(time.Unix(1789862400, 0)))
	f.Add("")
	f.Add("AAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, text string) {
		at, ok := q.readCursor(text)
		if ok && (q.cursor(at) != text || !at.After(q.start) ||
			!at.Equal(at.Truncate(24*time.Hour))) {
			t.Fatalf("%q is read as %v, whose cursor is %q", text, at, q.cursor(at))
		}
	})
}
