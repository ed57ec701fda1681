package e2e

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// spent is what a tenant has used of a model; of an empty model: of all.
type spent struct {
	Tenant   string `json:"tenant"`
	Model    string `json:"model"`
	Requests int64  `json:"requests"`
	Failed   int64  `json:"failed_requests"`
	Input    int64  `json:"input_tokens"`
	Output   int64  `json:"output_tokens"`
}

// spentBy returns what batch get shows of a batch.
func spentBy(u *reader, key, tenant string) (s spent) {
	u.t.Helper()
	output, err := u.run("tidefill batch get --latest --json --api-key " + key)
	var b struct {
		Counts struct{ Completed, Failed int64 } `json:"request_counts"`
		Usage  struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(output), &b)
	}
	if err != nil {
		u.t.Fatalf("batch get: %v\n%s", err, output)
	}
	return spent{Tenant: tenant, Requests: b.Counts.Completed + b.Counts.Failed,
		Failed: b.Counts.Failed, Input: b.Usage.Input, Output: b.Usage.Output}
}

// spentRows returns what usage prints.
func spentRows(u *reader, flags string) (rows []spent) {
	u.t.Helper()
	output, err := u.run("tidefill usage --json " + flags)
	if err != nil {
		u.t.Fatalf("usage %s: %v\n%s", flags, err, output)
	}
	decoder := json.NewDecoder(strings.NewReader(output))
	for decoder.More() {
		var row spent
		if err := decoder.Decode(&row); err != nil {
			u.t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// Two tenants have batches of two models. tidefill usage, the SDK and the console show exactly what
// these have used, also after a batch is deleted and the daemon killed. Last uses of keys
// survive the end of the daemon.
func TestUsageIsThatOfTheBatches(t *testing.T) {
	t.Parallel()
	small, large := NewStub(t, "small"), NewStub(t, "large")
	small.Intercept(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		wrong := strings.Contains(string(body), "wrong")
		if wrong {
			http.Error(w, `{"error":{"message":"no","code":"bad"}}`, http.StatusBadRequest)
		}
		return wrong
	})
	u := newReader(t)
	keys := u.write("keys.yaml", "keys:\n"+
		"  - {hash: \"sha256:"+Digest([]byte("key-a"))+"\", tenant: a}\n"+
		"  - {hash: \"sha256:"+Digest([]byte("key-b"))+"\", tenant: b}\n"+
		"  - {hash: \"sha256:"+Digest([]byte("root"))+"\", tenant: ops, role: admin}\n")
	d := NewDaemon(t, Options{Admin: freeAddress(t), Upstreams: []string{small.URL, large.URL},
		Args: []string{"--config", u.write("tidefill.yaml", "auth: {keys_file: "+keys+"}\n")},
		Set:  []string{"flowcontrol.policy=fixed"}})
	u.daemon = d
	u.write("a.jsonl", string(NewLines("s", "small", 40).Content)+
		string(NewLines("wrong", "small", 2).Content)+string(NewLines("l", "large", 7).Content))
	u.write("b.jsonl", string(NewLines("b", "large", 5).Content)+
		string(NewLines("c", "small", 1).Content))
	for _, line := range []string{
		"tidefill batch submit a.jsonl --wait --api-key key-a || [ $? = 4 ]",
		"tidefill batch submit b.jsonl --wait --api-key key-b",
	} {
		if output, err := u.run(line); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, output)
		}
	}
	all := []spent{spentBy(u, "key-a", "a"), spentBy(u, "key-b", "b")}
	if all[0].Requests != 49 || all[0].Failed != 2 || all[0].Input != 3*47 || all[1].Output != 12 {
		t.Fatalf("the batches show %+v", all)
	}
	byModel := []spent{{"a", "small", 42, 2, 120, 80}, {"a", "large", 7, 0, 21, 14},
		{"b", "large", 5, 0, 15, 10}, {"b", "small", 1, 0, 3, 2}}
	check := func() {
		t.Helper()
		for _, c := range []struct {
			flags string
			want  []spent
		}{
			{"--by tenant --api-key root", all},
			{"--by tenant --api-key root --since 1h", all},
			{"--by tenant --api-key key-a", all[:1]},
			{"--by tenant --api-key root --tenant b", all[1:]},
			{"--by tenant --api-key root --tenant ops", nil},
			{"--api-key root", byModel},
			{"--api-key key-b -m small", byModel[3:]},
			{"--api-key root --since 9d --until 8d", nil},
		} {
			if got := spentRows(u, c.flags); !reflect.DeepEqual(got, c.want) {
				t.Errorf("usage %s:\ngot  %+v\nwant %+v", c.flags, got, c.want)
			}
		}
	}
	check()

	admin := openai.NewClient(option.WithBaseURL(d.DescribedURL()+"/v1"),
		option.WithAdminAPIKey("root"))
	page, err := admin.Admin.Organization.Usage.Completions(t.Context(),
		openai.AdminOrganizationUsageCompletionsParams{
			StartTime: time.Now().Add(-24 * time.Hour).Unix(), BucketWidth: "1h",
			GroupBy: []string{"project_id", "model", "batch"}, ProjectIDs: []string{"a", "b"},
			Batch: openai.Bool(true), Limit: openai.Int(168)})
	if err != nil {
		t.Fatal(err)
	}
	sums := map[spent]int64{}
	for _, bucket := range page.Data {
		for _, result := range bucket.Results {
			used := result.AsOrganizationUsageCompletionsResult()
			if !used.Batch || used.InputCachedTokens != 0 {
				t.Errorf("the SDK reads %s", used.RawJSON())
			}
			of := spent{Tenant: used.ProjectID, Model: used.Model}
			sums[of] += 1000*used.NumModelRequests + used.InputTokens
		}
	}
	want := map[spent]int64{}
	for _, row := range byModel {
		want[spent{Tenant: row.Tenant, Model: row.Model}] = 1000*row.Requests + row.Input
	}
	if page.HasMore || !reflect.DeepEqual(sums, want) {
		t.Errorf("the SDK reads %v, want %v", sums, want)
	}

	lastUses := func() map[string]int64 {
		t.Helper()
		admin := openai.NewClient(option.WithBaseURL(d.DescribedURL()+"/v1"),
			option.WithAdminAPIKey("root"))
		at, keys := map[string]int64{}, admin.Admin.Organization.AdminAPIKeys.ListAutoPaging(
			t.Context(), openai.AdminOrganizationAdminAPIKeyListParams{Limit: openai.Int(2)})
		for keys.Next() {
			at[keys.Current().Owner.ID] = keys.Current().LastUsedAt
		}
		if keys.Err() != nil || len(at) != 3 {
			t.Errorf("the SDK lists %v, %v", at, keys.Err())
		}
		return at
	}
	before := lastUses()
	d.Signal(syscall.SIGTERM)
	if status := d.Wait(10 * time.Second); status != 0 {
		t.Errorf("the daemon ended with status %d", status)
	}
	d.Start()
	d.AwaitReady()
	if after := lastUses(); before["a"] == 0 || after["a"] != before["a"] ||
		after["b"] != before["b"] || after["ops"] < before["ops"] {
		t.Errorf("keys were last used at %v, and after a restart at %v", before, after)
	}

	d.Kill()
	d.Start()
	d.AwaitReady()
	if output, err := u.run("tidefill batch delete --latest --yes --api-key key-a"); err != nil {
		t.Fatalf("delete: %v\n%s", err, output)
	}
	check()

	b := NewBrowser(t)
	b.Open(t, "http://"+d.Admin+"/console")
	b.Await(t, 20*time.Second, "#used", "Used in the last 7 days", "small\ta\t42\t120\t0\t80",
		"large\tb\t5\t15\t0\t10")
}
