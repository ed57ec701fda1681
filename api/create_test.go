package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// lineFor returns a valid batch line for an endpoint and a model.
func lineFor(id, url, model string) string {
	return fmt.Sprintf(
		`{"custom_id":%q,"method":"POST","url":%q,"body":{"model":%q,"prompt":"hi","max_tokens":7}}`+"\n", id, url, model)
}

// create creates a batch of a file with these lines, and more members in the body.
func (s *service) create(content string, more ...string) map[string]any {
	s.t.Helper()
	return s.createOf(s.upload(content), more...).ok()
}

func (s *service) createOf(fileID string, more ...string) answer {
	s.t.Helper()
	members := append([]string{
		fmt.Sprintf(`"input_file_id":%q`, fileID), `"endpoint":"/v1/chat/completions"`,
		`"completion_window":"24h"`,
	}, more...)
	return s.post("/v1/batches", "{"+strings.Join(members, ",")+"}")
}

// batchKeys are the members of a batch object.
var batchKeys = []string{
	"cancelled_at", "cancelling_at", "completed_at", "completion_window", "created_at", "endpoint",
	"error_file_id", "errors",
	"expired_at", "expires_at", "failed_at", "finalizing_at", "id", "in_progress_at",
	"input_file_id", "metadata", "model", "object",
	"output_file_id", "request_counts", "status", "tidefill", "usage",
}

func TestCreateAnswersWithEveryField(t *testing.T) {
	s := newService(t)
	var nudged []string
	s.server.deps.Nudge = func(id string) { nudged = append(nudged, id) }
	file := s.upload(line("a") + line("b"))
	b := s.createOf(file, `"metadata":{"team":"red"}`).ok()

	if got := slices.Sorted(maps.Keys(b)); !slices.Equal(got, batchKeys) {
		t.Errorf("got keys %v, want %v", got, batchKeys)
	}
	created := float64(s.clock.now().Unix())
	want := map[string]any{
		"object": "batch", "endpoint": "/v1/chat/completions", "model": "m", "input_file_id": file,
		"completion_window": "24h",
		"status":            "validating", "created_at": created, "expires_at": created + 86_400,
		"request_counts": map[string]any{"total": 2.0, "completed": 0.0, "failed": 0.0},
		"metadata":       map[string]any{"team": "red"},
	}
	for key, value := range b {
		if key == "id" || key == "tidefill" {
			continue
		}
		if diff := cmp.Diff(want[key], value); diff != "" { // what isn't listed must be null
			t.Errorf("%s (-want +got): %s", key, diff)
		}
	}
	id := b["id"].(string)
	if !strings.HasPrefix(id, "batch_") || !slices.Equal(nudged, []string{id}) {
		t.Errorf("got id %q, nudged %q", id, nudged)
	}
	wantDetails := map[string]any{
		"paused": false, "progress": 0.0, "rate": 0.0, "eta": nil, "deadline": created + 86_400,
		"start_by": nil, "verdict": nil, "predicted_finish": nil, "predicted_band": nil,
		"predicted_finish_with_one_more": nil,
		"tenant":                         "default",
		"start_by_missed":                false, "priority": 0.0, "rank_error": nil,
		"attempts": 0.0, "in_flight": 0.0, "retrying": 0.0, "not_run": 0.0,
		"waiting": nil, "reason": nil,
		"reported_at": nil,
		"retry_of":    nil, "options": nil, "options_omitted": nil, "failures": []any{},
		"models":         []any{map[string]any{"model": "m", "lines": 2.0}},
		"input_file_ids": []any{file}, "input_url": nil, "outputs": []any{},
		"output": nil,
	}
	if diff := cmp.Diff(wantDetails, b["tidefill"]); diff != "" {
		t.Errorf("tidefill (-want +got): %s", diff)
	}
	if diff := cmp.Diff(b, s.get("/v1/batches/"+id).ok()); diff != "" {
		t.Errorf("retrieve differs from create (-create +retrieve): %s", diff)
	}
}

func TestCreateRefusals(t *testing.T) {
	s := newService(t)
	file := s.upload(line("a"))
	other := s.postForm("/v1/files", field{name: "purpose", value: "user_data"},
		field{name: "file", filename: "a.jsonl", value: "x"}).ok()["id"]
	base := fmt.Sprintf(
		`"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"`, file)
	with := func(members string) string { return "{" + base + "," + members + "}" }
	ours := func(members string) string { return with(`"tidefill":{` + members + `}`) }
	pairs := func(n int) string {
		var p []string
		for i := range n {
			p = append(p, fmt.Sprintf(`"k%d":""`, i))
		}
		return `"metadata":{` + strings.Join(p, ",") + `}`
	}
	for name, test := range map[string]struct {
		body, param, code string
		words             string
	}{
		"no body":    {"", "", "invalid_json", "no body"},
		"no JSON":    {"{", "", "invalid_json", "parse"},
		"two values": {"{}{}", "", "invalid_json", "parse"},
		"not UTF-8":  {"{\"a\":\"\xff\"}", "", "invalid_json", "UTF-8"},
		"an array":   {"[]", "", "invalid_type", "an array"},
		"null":       {"null", "", "invalid_type", "null"},
		"a key twice": {with(`"endpoint":"/v1/embeddings"`), "",
			"invalid_json", `"endpoint"`},
		"nothing in it": {"{}", "input_file_id", "missing_required_parameter",
			"Missing required parameter: 'input_file_id'."},
		"no file": {`{"endpoint":"/v1/embeddings","completion_window":"24h"}`,
			"input_file_id", "missing_required_parameter", ""},
		"null file": {`{"input_file_id":null}`, "input_file_id",
			"missing_required_parameter", ""},
		"empty file id": {`{"input_file_id":""}`, "input_file_id", "missing_required_parameter",
			""},
		"file id no string": {`{"input_file_id":7}`, "input_file_id", "invalid_type", "a number"},
		"unknown file": {
			`{"input_file_id":"file-x","endpoint":"/v1/embeddings","completion_window":"24h"}`,
			"input_file_id", "", "No such File object: file-x"},
		"wrong purpose": {
			fmt.Sprintf(
				`{"input_file_id":%q,"endpoint":"/v1/embeddings","completion_window":"24h"}`,
				other),
			"input_file_id", "invalid_value", "user_data"},
		"no endpoint": {fmt.Sprintf(`{"input_file_id":%q,"completion_window":"24h"}`, file),
			"endpoint", "missing_required_parameter", ""},
		"unknown endpoint": {
			fmt.Sprintf(
				`{"input_file_id":%q,"completion_window":"24h","endpoint":"/v1/images/edits"}`,
				file), "endpoint", "invalid_value", "/v1/rerank"},
		"endpoint astray": {
			fmt.Sprintf(
				`{"input_file_id":%q,"completion_window":"24h","endpoint":"/v1/embeddings/"}`,
				file), "endpoint", "invalid_value", ""},
		"no window": {fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/embeddings"}`, file),
			"completion_window", "missing_required_parameter", ""},
		"nonsense window": {
			fmt.Sprintf(
				`{"input_file_id":%q,"endpoint":"/v1/embeddings","completion_window":"soon"}`,
				file), "completion_window", "invalid_value", "best_effort"},

		"unknown key": {with(`"input_file":"x"`), "input_file", "unknown_parameter",
			"Did you mean 'input_file_id'?"},
		"far from any key": {with(`"zzzzzzzzzzzz":1`), "zzzzzzzzzzzz", "unknown_parameter",
			"Unknown parameter: 'zzzzzzzzzzzz'."},

		"17 pairs": {with(pairs(17)), "metadata", "invalid_value", "17 pairs"},
		"long key": {with(`"metadata":{"` + strings.Repeat("ä", 65) + `":""}`), "metadata",
			"invalid_value", "65 characters"},
		"long value": {with(`"metadata":{"a":"` + strings.Repeat("ä", 513) + `"}`),
			"metadata.a", "invalid_value", "513 characters"},
		"value no string": {with(`"metadata":{"a":1}`), "metadata.a", "invalid_type", "a number"},
		"value null":      {with(`"metadata":{"a":null}`), "metadata.a", "invalid_type", "null"},
		"metadata no map": {with(`"metadata":[]`), "metadata", "invalid_type", "an array"},
		"expiry too short": {with(`"output_expires_after":{"anchor":"created_at","seconds":3599}`),
			"output_expires_after.seconds", "invalid_value", "3600"},
		"expiry too long": {
			with(`"output_expires_after":{"anchor":"created_at","seconds":2592001}`),
			"output_expires_after.seconds", "invalid_value", ""},
		"expiry's anchor": {with(`"output_expires_after":{"anchor":"now","seconds":3600}`),
			"output_expires_after.anchor", "invalid_value", "created_at"},
		"no anchor": {with(`"output_expires_after":{"seconds":3600}`),
			"output_expires_after.anchor", "missing_required_parameter", ""},
		"no seconds": {with(`"output_expires_after":{"anchor":"created_at"}`),
			"output_expires_after.seconds", "missing_required_parameter", ""},
		"seconds as string": {
			with(`"output_expires_after":{"anchor":"created_at","seconds":"3600"}`),
			"output_expires_after.seconds", "invalid_type", "a string"},

		"ours no object": {with(`"tidefill":"fast"`), "tidefill", "invalid_type",
			"a string"},
		"ours unknown": {ours(`"priorty":1`), "tidefill.priorty", "unknown_parameter",
			"Did you mean 'tidefill.priority'?"},
		"ours a key twice": {ours(`"priority":1,"priority":2`), "tidefill",
			"invalid_value", `"priority"`},
		"priority too high": {ours(`"priority":101`), "tidefill.priority", "invalid_value",
			"-100 to 100"},
		"priority a fraction": {ours(`"priority":1.5`), "tidefill.priority", "invalid_type",
			"an integer"},
		"priority a string": {ours(`"priority":"1"`), "tidefill.priority", "invalid_type", ""},
		"priority beyond int64": {ours(`"priority":99999999999999999999`), "tidefill.priority",
			"invalid_value", ""},
		"no failed lines": {ours(`"max_failed_lines":-1`), "tidefill.max_failed_lines",
			"invalid_value", ""},
		"ratio 0": {ours(`"max_failed_ratio":0`), "tidefill.max_failed_ratio",
			"invalid_value", "above 0"},
		"ratio above 1": {ours(`"max_failed_ratio":1.01`), "tidefill.max_failed_ratio",
			"invalid_value", ""},
		"ratio beyond floats": {ours(`"max_failed_ratio":1e999`), "tidefill.max_failed_ratio",
			"invalid_value", ""},
		"tokens below 1": {ours(`"max_total_tokens":-1`), "tidefill.max_total_tokens",
			"invalid_value", ""},
		"group by": {ours(`"group_by":"colour"`), "tidefill.group_by", "invalid_value",
			"'prefix', 'model', 'none'"},
		"outputs": {ours(`"outputs":"many"`), "tidefill.outputs", "invalid_value",
			"'joined'"},
		"concurrency 0": {ours(`"max_concurrency":0`), "tidefill.max_concurrency",
			"invalid_value", ""},

		"retry no object": {ours(`"retry":3`), "tidefill.retry", "invalid_type", ""},
		"retry 0 attempts": {ours(`"retry":{"attempts":0}`), "tidefill.retry.attempts",
			"invalid_value", "1 to 100"},
		"retry 101 attempts": {ours(`"retry":{"attempts":101}`), "tidefill.retry.attempts",
			"invalid_value", ""},
		"retry on 200": {ours(`"retry":{"on":[500,200]}`), "tidefill.retry.on[1]",
			"invalid_value", "400 to 599"},
		"retry on text": {ours(`"retry":{"on":["500"]}`), "tidefill.retry.on[0]",
			"invalid_type", ""},
		"retry on nothing": {ours(`"retry":{"on":[]}`), "tidefill.retry.on", "invalid_value",
			""},
		"retry unknown": {ours(`"retry":{"attemps":3}`), "tidefill.retry.attemps",
			"unknown_parameter", "'tidefill.retry.attempts'"},
		"check of nothing": {ours(`"check":{"attempts":3}`), "tidefill.check", "invalid_value",
			"no rule"},
		"check no object": {ours(`"check":"stop"`), "tidefill.check", "invalid_type", ""},
		"check unknown": {ours(`"check":{"json_shema":{}}`), "tidefill.check.json_shema",
			"unknown_parameter", "'tidefill.check.json_schema'"},
		"check 11 attempts": {ours(`"check":{"pattern":"x","attempts":11}`),
			"tidefill.check.attempts", "invalid_value", "1 to 10"},
		"check no reason": {ours(`"check":{"finish_reason":[]}`), "tidefill.check.finish_reason",
			"invalid_value", "1 to 16"},
		"check reason": {ours(`"check":{"finish_reason":"stop"}`),
			"tidefill.check.finish_reason", "invalid_type", "an array"},
		"check reason 7": {ours(`"check":{"finish_reason":["stop",7]}`),
			"tidefill.check.finish_reason[1]", "invalid_type", "a number"},
		"check pattern": {ours(`"check":{"pattern":"(?=x)"}`), "tidefill.check.pattern",
			"invalid_value", "(?="},
		"check pattern no text": {ours(`"check":{"pattern":7}`), "tidefill.check.pattern",
			"invalid_type", ""},
		"check schema": {ours(`"check":{"json_schema":{"properties":{"a":{"type":"strin"}}}}`),
			"tidefill.check.json_schema", "invalid_value", "/properties/a/type"},
		"check foreign schema": {ours(`"check":{"json_schema":{"$ref":"http://127.0.0.1:1/"}}`),
			"tidefill.check.json_schema", "invalid_value", "nothing is loaded"},
		"check of embeddings": {fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/embeddings",`+
			`"completion_window":"24h","tidefill":{"check":{"pattern":"x"}}}`, file),
			"tidefill.check", "invalid_value", "'/v1/embeddings'"},

		"canary 0":        {ours(`"canary":0`), "tidefill.canary", "invalid_value", ""},
		"canary a string": {ours(`"canary":"1"`), "tidefill.canary", "invalid_type", ""},
		"canary without n": {ours(`"canary":{"max_failed_ratio":0.1}`), "tidefill.canary.lines",
			"missing_required_parameter", ""},
		"canary's ratio": {ours(`"canary":{"lines":3,"max_failed_ratio":2}`),
			"tidefill.canary.max_failed_ratio", "invalid_value", ""},
		"deadline passed": {ours(`"deadline":"2020-01-01T00:00:00Z"`), "tidefill.deadline",
			"invalid_value", "has passed"},
		"deadline below 1s": {ours(`"deadline":"500ms"`), "tidefill.deadline", "invalid_value",
			"1s"},
		"deadline in millis": {ours(`"deadline":1790000000000`), "tidefill.deadline",
			"invalid_value", "milliseconds"},
		"deadline a fraction": {ours(`"deadline":1790000000.5`), "tidefill.deadline",
			"invalid_value", ""},
		"deadline nonsense": {ours(`"deadline":"tomorrow"`), "tidefill.deadline", "invalid_value",
			"tomorrow"},
		"deadline a list": {ours(`"deadline":[1]`), "tidefill.deadline", "invalid_value", ""},
		"start_by passed": {ours(`"start_by":1`), "tidefill.start_by", "invalid_value",
			"has passed"},
		"start after the end": {ours(`"start_by":"2h","deadline":"1h"`), "tidefill.start_by",
			"invalid_value", "tidefill.deadline"},

		"model overridden": {ours(`"overrides":{"model":"x"}`), "tidefill.overrides.model",
			"invalid_value", "write it into the lines"},
		"stream by default": {ours(`"defaults":{"stream":false}`), "tidefill.defaults.stream",
			"invalid_value", ""},
		"model of a model": {ours(`"overrides":{"by_model":{"m":{"model":"x"}}}`),
			"tidefill.overrides.by_model.m.model", "invalid_value", ""},
		"scoped and not": {ours(`"overrides":{"all":{},"temperature":0}`),
			"tidefill.overrides.temperature", "unknown_parameter", ""},
		"rule of unknown url": {ours(`"defaults":{"by_url":{"/v1/x":{"n":1}}}`),
			"tidefill.defaults.by_url./v1/x", "invalid_value", "/v1/embeddings"},
		"rule no object": {ours(`"defaults":{"by_model":{"m":1}}`),
			"tidefill.defaults.by_model.m", "invalid_type", ""},
		"rule of empty model": {ours(`"defaults":{"by_model":{"":{"n":1}}}`),
			"tidefill.defaults.by_model.", "invalid_value", ""},
		"nameless parameter": {ours(`"defaults":{"":1}`), "tidefill.defaults.", "invalid_value",
			""},
		"too deep a parameter": {ours(`"defaults":{"a":` + strings.Repeat("[", 600) +
			strings.Repeat("]", 600) + `}`), "tidefill.defaults.", "invalid_value", ""},

		"inputs no list": {ours(`"input_file_ids":"a"`), "tidefill.input_file_ids",
			"invalid_type", ""},
		"no inputs": {ours(`"input_file_ids":[]`), "tidefill.input_file_ids",
			"invalid_value", ""},
		"101 inputs": {ours(`"input_file_ids":["a"` + strings.Repeat(`,"a"`, 100) + `]`),
			"tidefill.input_file_ids", "invalid_value", "101"},
		"an input twice": {ours(fmt.Sprintf(`"input_file_ids":[%q,%[1]q]`, file)),
			"tidefill.input_file_ids[1]", "invalid_value", "once"},
		"an input no string": {ours(`"input_file_ids":[1]`), "tidefill.input_file_ids[0]",
			"invalid_type", ""},
		"first input differs": {ours(`"input_file_ids":["file-x"]`), "input_file_id",
			"invalid_value", "first"},
		"a later input absent": {ours(fmt.Sprintf(`"input_file_ids":[%q,"file-x"]`, file)),
			"tidefill.input_file_ids[1]", "", "No such File object: file-x"},
	} {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.t = t
			s.post("/v1/batches", test.body).refused(http.StatusBadRequest, test.param, test.code,
				test.words)
		})
	}
	if list := s.get("/v1/batches").ok(); len(list["data"].([]any)) != 0 {
		t.Errorf("refused requests have created batches: %v", list)
	}
}

func TestCreateRefusesHugeBodies(t *testing.T) {
	s := newService(t)
	s.post("/v1/batches", `{"metadata":"`+strings.Repeat("a", maxBody)+`"}`).refused(
		http.StatusRequestEntityTooLarge, "", "")
}

func TestCreateResolvesOptions(t *testing.T) {
	s := newService(t)
	now := s.clock.now().UTC()
	for name, test := range map[string]struct {
		window, options string
		want            store.Options
		deadline, start time.Time
	}{
		"none": {"24h", "", store.Options{GroupBy: "prefix"}, now.Add(24 * time.Hour),
			time.Time{}},
		"empty": {"best_effort", `{}`, store.Options{GroupBy: "prefix"}, time.Time{}, time.Time{}},
		"numbers": {
			"90m", `{"priority":-100,"max_failed_lines":3,"max_failed_ratio":1,"max_total_tokens":1000000000000,"max_concurrency":9,"group_by":"none"}`,
			store.Options{Priority: -100, StopAtFailed: 4, MaxFailedRatio: 1, MaxTotalTokens: 1e12,
				MaxConcurrency: 9, GroupBy: "none"},
			now.Add(90 * time.Minute), time.Time{}},
		"nulls": {
			"7d", `{"priority":null,"retry":null,"canary":null,"defaults":null,"deadline":null,"input_file_ids":null}`,
			store.Options{GroupBy: "prefix"}, now.Add(7 * 24 * time.Hour), time.Time{}},
		"retry": {"24h", `{"retry":{"attempts":5,"on":[409,500]}}`,
			store.Options{GroupBy: "prefix", RetryAttempts: 5, RetryOn: []int{409, 500}},
			now.Add(24 * time.Hour), time.Time{}},
		"canary": {"24h", `{"canary":10}`,
			store.Options{GroupBy: "prefix", Canary: 10, CanaryMaxFailedRatio: 0.5},
			now.Add(24 * time.Hour), time.Time{}},
		"canary with ratio": {"24h", `{"canary":{"lines":10,"max_failed_ratio":0}}`,
			store.Options{GroupBy: "prefix", Canary: 10}, now.Add(24 * time.Hour), time.Time{}},
		"a deadline within the window": {"24h", `{"deadline":"2s","start_by":"1s"}`,
			store.Options{GroupBy: "prefix"}, now.Add(2 * time.Second), now.Add(time.Second)},
		"a deadline beyond the window": {"1h", `{"deadline":"2h"}`,
			store.Options{GroupBy: "prefix"}, now.Add(time.Hour), time.Time{}},
		"a deadline in Unix seconds": {"best_effort", fmt.Sprintf(`{"deadline":%d}`, now.Unix()+60),
			store.Options{GroupBy: "prefix"}, now.Add(time.Minute), time.Time{}},
		"a deadline as a time": {"24h", fmt.Sprintf(`{"deadline":%q}`, now.Add(time.Minute).In(
			time.FixedZone("", 7200)).Format(time.RFC3339)),
			store.Options{GroupBy: "prefix"}, now.Add(time.Minute), time.Time{}},
		"rules": {
			"24h", `{"defaults":{"temperature":0,"seed":12345678901234567890},"overrides":{"by_model":{"b":{"n":1},"a":{"top_k":null}},"all":{"x":{"y":[1]}},"by_url":{"/v1/rerank":{"top_n":3}}}}`,
			store.Options{GroupBy: "prefix"}, now.Add(24 * time.Hour), time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			body := fmt.Sprintf(
				`{"input_file_id":"f","endpoint":"/v1/rerank","completion_window":%q}`, test.window)
			if test.options != "" {
				body = strings.TrimSuffix(body, "}") + `,"tidefill":` + test.options + "}"
			}
			d, err := readDraft([]byte(body), now)
			if err != nil {
				t.Fatal(err)
			}
			b := newBatch("t", "batch_1", d, []store.File{{ID: "f", Summary: &batchfile.Summary{}}},
				now)
			if diff := cmp.Diff(test.want, b.Options); diff != "" {
				t.Errorf("options (-want +got): %s", diff)
			}
			if !b.Deadline.Equal(test.deadline) || !b.StartBy.Equal(test.start) {
				t.Errorf("got deadline %v and start %v, want %v and %v", b.Deadline, b.StartBy,
					test.deadline, test.start)
			}
			if got := string(d.Given); got != test.options {
				t.Errorf("got options echoed as %s, want %s", got, test.options)
			}
		})
	}
}

func TestParametersAreKeptApart(t *testing.T) {
	now := time.Now()
	for options, want := range map[string]struct {
		shown   string
		omitted []string
		rules   store.Parameters
	}{
		`{"priority":3}`: {`{"priority":3}`, nil, store.Parameters{}},
		`{"priority":3,"defaults":{"temperature":0,"seed":12345678901234567890},"overrides":{"by_model":{"b":{"n":1},"a":{"top_k":null}},"all":{"x":{"y":[1]}},"by_url":{"/v1/rerank":{"top_n":3}}}}`: {
			`{"priority":3}`, []string{"defaults", "overrides"}, store.Parameters{
				Defaults: []store.ParameterRule{
					{Parameters: raws("temperature", "0", "seed", "12345678901234567890")},
				},
				Overrides: []store.ParameterRule{
					{Parameters: raws("x", `{"y":[1]}`)},
					{URL: "/v1/rerank", Parameters: raws("top_n", "3")},
					{Model: "a", Parameters: raws("top_k", "null")},
					{Model: "b", Parameters: raws("n", "1")},
				},
			}},
		`{"priority":3,"max_failed_ratio":0.5` + strings.Repeat("0", maxShownOptions) + `}`: {`{}`,
			[]string{"max_failed_ratio", "priority"}, store.Parameters{}},
		`{"priority":3` + strings.Repeat(" ", maxShownOptions) + `}`: {
			`{"priority":3}`, nil, store.Parameters{}},
	} {
		d, err := readDraft(
			[]byte(
				`{"input_file_id":"f","endpoint":"/v1/rerank","completion_window":"24h","tidefill":`+options+`}`), now)
		if err != nil {
			t.Fatal(err)
		}
		b := newBatch("t", "batch_1", d, []store.File{{ID: "f", Summary: &batchfile.Summary{}}},
			now)
		if diff := cmp.Diff(want.omitted, b.Apart); string(b.OptionsJSON) != want.shown ||
			diff != "" {
			t.Errorf("%.60s: shown as %s, want %s; omitted (-want +got): %s", options,
				b.OptionsJSON, want.shown, diff)
		}
		if want.omitted == nil {
			continue
		}
		want.rules.OptionsJSON = json.RawMessage(options)
		if diff := cmp.Diff(&want.rules, b.Parameters); diff != "" {
			t.Errorf("%.60s: parameters (-want +got): %s", options, diff)
		}
	}
}

func raws(pairs ...string) map[string]json.RawMessage {
	m := make(map[string]json.RawMessage)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return m
}

func TestWindows(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"24h": 24 * time.Hour, "1m": time.Minute, "30d": 30 * day, "90m": 90 * time.Minute,
		"1d12h": 36 * time.Hour, "1h30m": 90 * time.Minute,
		"best_effort": 0,
		// Nonsense.
		"59s": -1, "31d": -1, "30d1s": -1, "24": -1, "-24h": -1, "+24h": -1, "24H": -1, "1.5d": -1,
		"d": -1, "1d1d": -1, "1d-1h": -1, "99999999d": -1,
		"1d25h": -1, " 24h": -1, "1e3h": -1, "inf": -1, "Best_Effort": -1,
	} {
		o, err := readObject([]byte(fmt.Sprintf(`{"w":%q}`, text)))
		if err != nil {
			t.Fatal(err)
		}
		given, got := readWindow(o, "w")
		err = o.finish()
		if want >= 0 && (err != nil || got != want || given != text) {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
		if want < 0 && err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestCreateKeepsMetadataAsGiven(t *testing.T) {
	s := newService(t)
	file := s.upload(line("a"))
	for given, want := range map[string]any{
		`"metadata":null`: nil,
		`"metadata":{}`:   map[string]any{},
		`"metadata":{"` + strings.Repeat("ä", 64) + `":"` + strings.Repeat("𝄞", 512) +
			`"}`: map[string]any{strings.Repeat("ä", 64): strings.Repeat("𝄞", 512)},
	} {
		b := s.createOf(file, given).ok()
		if diff := cmp.Diff(want, b["metadata"]); diff != "" {
			t.Errorf("%s (-want +got): %s", given, diff)
		}
		got := s.get("/v1/batches/" + b["id"].(string)).ok()["metadata"]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, retrieved (-want +got): %s", given, diff)
		}
	}
}

func TestCreateOfFaultyFileFails(t *testing.T) {
	s := newService(t)
	b := s.create(line("a") + "{\n\n" + lineFor("b", "/v1/embeddings", "m") + line("a"))
	if b["status"] != "failed" || b["failed_at"] == nil || b["in_progress_at"] != nil ||
		b["output_file_id"] != nil {
		t.Errorf("got %v, want a batch that failed at once", b)
	}
	if diff := cmp.Diff(map[string]any{"total": 0.0, "completed": 0.0, "failed": 0.0},
		b["request_counts"]); diff != "" {
		t.Errorf("counts (-want +got): %s", diff)
	}
	type found struct{ code, param, line any }
	var got []found
	for _, e := range b["errors"].(map[string]any)["data"].([]any) {
		e := e.(map[string]any)
		got = append(got, found{e["code"], e["param"], e["line"]})
	}
	want := []found{{"invalid_json_line", nil, 2.0}, {"url_mismatch", "url", 4.0},
		{"duplicate_custom_id", "custom_id", 5.0}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(found{})); diff != "" {
		t.Errorf("errors (-want +got): %s", diff)
	}
	s.post("/v1/batches/"+b["id"].(string)+"/cancel", "").refused(http.StatusConflict, "",
		"invalid_batch_status", "Cannot cancel a batch with status 'failed'.")
}

func TestCreateShowsAThousandFaults(t *testing.T) {
	s := newService(t)
	b := s.create(strings.Repeat("{\n", 700) + strings.Repeat(lineFor("x", "/v1/embeddings", "m"),
		1) + strings.Repeat("[]\n", 400))
	data := b["errors"].(map[string]any)["data"].([]any)
	last := data[len(data)-1].(map[string]any)
	if len(data) != maxFaults+1 || last["code"] != codeMoreFaults ||
		!strings.HasPrefix(last["message"].(string), "101 more") {
		t.Errorf("got %d errors, the last %v; want 1001, the last counting 101 more", len(data),
			last)
	}
}

func TestCreateOfEmptyFileFails(t *testing.T) {
	s := newService(t)
	b := s.create("\n\n")
	if data := b["errors"].(map[string]any)["data"].([]any); len(data) != 1 ||
		data[0].(map[string]any)["code"] != "empty_file" {
		t.Errorf("got %v, want only empty_file", data)
	}
}

func TestCreateCountsEmbeddingInputs(t *testing.T) {
	s := newService(t)
	texts := func(id string, n int) string {
		return fmt.Sprintf(
			`{"custom_id":%q,"method":"POST","url":"/v1/embeddings","body":{"model":"e","input":["a"%s]}}`+"\n",
			id, strings.Repeat(`,"a"`, n-1))
	}
	for n, want := range map[int]string{25_000: "validating", 25_001: "failed"} {
		file := s.upload(texts("a", n) + texts("b", 25_000))
		b := s.post("/v1/batches", fmt.Sprintf(
			`{"input_file_id":%q,"endpoint":"/v1/embeddings","completion_window":"24h"}`,
			file)).ok()
		if b["status"] != want {
			t.Errorf("%d inputs: got %v, want %s: %v", n+25_000, b["status"], want, b["errors"])
		}
	}
}

func TestCreateWithSeveralModels(t *testing.T) {
	s := newService(t)
	file := s.upload(lineFor("1", "/v1/completions", "b") + lineFor("2", "/v1/completions", "a") +
		lineFor("3", "/v1/completions", "b"))
	b := s.post("/v1/batches", fmt.Sprintf(
		`{"input_file_id":%q,"endpoint":"/v1/completions","completion_window":"24h"}`, file)).ok()
	want := []any{map[string]any{"model": "b", "lines": 2.0},
		map[string]any{"model": "a", "lines": 1.0}}
	if diff := cmp.Diff(want, b["tidefill"].(map[string]any)["models"]); diff != "" ||
		b["model"] != "b" || b["status"] != "validating" {
		t.Errorf("got model %v, status %v, models (-want +got): %s", b["model"], b["status"], diff)
	}
	stored, err := s.meta.Batch(t.Context(), "", b["id"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if stored.MaxTokens != 21 || stored.PromptBytes == 0 {
		t.Errorf("got %d tokens and %d prompt bytes, want 21 and some", stored.MaxTokens,
			stored.PromptBytes)
	}
}

func TestCreateFromSeveralFiles(t *testing.T) {
	s := newService(t)
	first, second := s.upload(line("a")+line("b")), s.upload("\n"+line("c")+line(`b`))
	// b again, with another JSON notation
	third := s.upload(strings.Replace(line("x"), `"x"`, `"\u0062"`, 1))
	inputs := func(ids ...string) string {
		return fmt.Sprintf(
			`{"endpoint":"/v1/chat/completions","completion_window":"24h","tidefill":{"outputs":"OUTPUTS","input_file_ids":["%s"]}}`,
			strings.Join(ids, `","`))
	}
	t.Run("joined", func(t *testing.T) {
		b := s.post("/v1/batches", strings.Replace(inputs(first, second, third), "OUTPUTS",
			"joined", 1)).ok()
		if b["status"] != "failed" {
			t.Fatalf("got status %v, want failed for duplicate custom_ids", b["status"])
		}
		var got []string
		for _, e := range b["errors"].(map[string]any)["data"].([]any) {
			e := e.(map[string]any)
			if e["code"] != "duplicate_custom_id" || e["param"] != "custom_id" {
				t.Errorf("got %v", e)
			}
			message, _, _ := strings.Cut(e["message"].(string), ";")
			got = append(got, fmt.Sprint(e["line"], " ", message))
		}
		want := []string{
			fmt.Sprintf(
				`3 File %s: the custom_id "b" of this line is also that of line 2 of file %s`,
				second, first),
			fmt.Sprintf(
				`1 File %s: the custom_id "b" of this line is also that of line 2 of file %s`,
				third, first),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("errors (-want +got): %s", diff)
		}
	})
	t.Run("per input", func(t *testing.T) {
		b := s.post("/v1/batches", strings.Replace(inputs(first, second, third), "OUTPUTS",
			"per_input", 1)).ok()
		if b["status"] != "validating" || b["input_file_id"] != first {
			t.Fatalf("got %v, want a batch of the three files", b)
		}
		stored, err := s.meta.Batch(t.Context(), "", b["id"].(string))
		if err != nil {
			t.Fatal(err)
		}
		var firsts, outputs []int
		ids := map[string]bool{}
		for i := range stored.Inputs {
			firsts = append(firsts, stored.Inputs[i].First)
			outputs = append(outputs, stored.Outputs[i].Input)
			ids[stored.Outputs[i].OutputID] = true
			ids[stored.Outputs[i].ErrorID] = true
		}
		if !slices.Equal(firsts, []int{0, 2, 4}) || !slices.Equal(outputs, []int{0, 1, 2}) ||
			len(ids) != 6 || stored.Counts.Total != 5 {
			t.Errorf("got inputs from %v, outputs of %v, %d ids, %d lines", firsts, outputs, len(
				ids), stored.Counts.Total)
		}
	})
	t.Run("unique", func(t *testing.T) {
		b := s.post("/v1/batches", strings.Replace(inputs(first, s.upload(line("c"))), "OUTPUTS",
			"joined", 1)).ok()
		stored, err := s.meta.Batch(t.Context(), "", b["id"].(string))
		if err != nil {
			t.Fatal(err)
		}
		if b["status"] != "validating" || len(stored.Outputs) != 1 ||
			stored.Outputs[0].Input != -1 {
			t.Errorf("got status %v, outputs %v", b["status"], stored.Outputs)
		}
	})
}

func TestCreateIsIdempotent(t *testing.T) {
	s := newService(t)
	body := fmt.Sprintf(
		`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`,
		s.upload(line("a")))
	first := s.post("/v1/batches", body, "Idempotency-Key", "k").ok()
	if again := s.post("/v1/batches", body, "Idempotency-Key",
		"k").ok(); again["id"] != first["id"] {
		t.Errorf("got batch %v the second time, want %v", again["id"], first["id"])
	}
	s.post("/v1/batches", strings.Replace(body, "24h", "25h", 1), "Idempotency-Key",
		"k").refused(400, "", "idempotency_key_reuse")
	if other := s.post("/v1/batches", body).ok(); other["id"] == first["id"] {
		t.Error("without a key the same batch was returned")
	}
}

func FuzzReadDraft(f *testing.F) {
	f.Add(
		`{"input_file_id":"f","endpoint":"/v1/embeddings","completion_window":"24h","metadata":{"a":"b"}}`)
	f.Add(
		`{"input_file_id":"f","endpoint":"/v1/rerank","completion_window":"7d","output_expires_after":{"anchor":"created_at","seconds":3600},` +
			`"tidefill":{"deadline":"1h","start_by":1790000001,"priority":-3,"retry":{"attempts":2,"on":[500]},"canary":{"lines":3},` +
			`"defaults":{"by_model":{"m":{"n":1}}},"overrides":{"temperature":0},"outputs":"per_input","input_file_ids":["f","g"]}}`)
	f.Add(`{"tidefill":{"deadline":"9999-12-31T23:59:59Z","canary":1,"max_failed_ratio":1e-9}}`)
	f.Add(`{"a":1,"a":2}`)
	now := time.Unix(1_790_000_000, 0).UTC()
	f.Fuzz(func(t *testing.T, body string) {
		d, err := readDraft([]byte(body), now)
		if err != nil {
			var known *httpError
			if !errors.As(err, &known) || known.Status != http.StatusBadRequest ||
				known.Message == "" {
				t.Fatalf("got %#v, want a 400 with a reason", err)
			}
			return
		}
		if _, ok := batchfile.LookupEndpoint(d.Endpoint); !ok || len(d.InputFileIDs) == 0 ||
			d.InputFileIDs[0] == "" {
			t.Fatalf("accepted without endpoint or file: %+v", d)
		}
		if d.WindowLength != 0 && (d.WindowLength < minWindow || d.WindowLength > maxWindow) ||
			d.WindowLength == 0 &&
				d.Window != bestEffort {
			t.Fatalf("accepted the window %q as %v", d.Window, d.WindowLength)
		}
		if !d.Deadline.IsZero() && !d.Deadline.After(now) {
			t.Fatalf("accepted the past deadline %v", d.Deadline)
		}
		files := make([]store.File, len(d.InputFileIDs))
		for i := range files {
			files[i] = store.File{ID: d.InputFileIDs[i], Summary: &batchfile.Summary{Lines: 1}}
		}
		if _, err := json.Marshal(showBatch(newBatch("t", "batch_1", d, files, now),
			store.Progress{}, now)); err != nil {
			t.Fatalf("cannot be encoded: %v", err)
		}
	})
}
