package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fakeAPI serves one ended batch with the files given by id, each a list of custom_ids.
func fakeAPI(t *testing.T, object string, files map[string]string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/batches/b", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, object)
	})
	mux.HandleFunc("GET /v1/files/{id}/content", func(w http.ResponseWriter, r *http.Request) {
		ids, ok := files[r.PathValue("id")]
		if !ok {
			http.Error(w, `{"error":{"message":"No such File object"}}`, http.StatusNotFound)
			return
		}
		for _, id := range strings.Fields(ids) {
			fmt.Fprintf(w, "{\"custom_id\":%q}\n", id)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Setenv("TIDEFILL_SERVER", server.URL)
}

func TestVerifyNamesOffenders(t *testing.T) {
	const joined = `{"id":"b","status":"completed","input_file_id":"in","output_file_id":"out","error_file_id":"err",
		"request_counts":{"total":4,"completed":3,"failed":1}}`
	const apart = `{"id":"b","status":"completed","request_counts":{"total":4,"completed":3,"failed":1},"tidefill":{
		"input_file_ids":["in","in2"],"outputs":[
			{"input_file_id":"in","output_file_id":"out","error_file_id":null},
			{"input_file_id":"in2","output_file_id":"out2","error_file_id":"err2"}]}}`
	tests := []struct {
		name   string
		object string
		files  map[string]string
		status int
		want   []string
	}{
		{"whole", joined, map[string]string{"in": "a b c d", "out": "a c d", "err": "b"}, exitOK,
			[]string{"proven"}},
		{"missing", joined, map[string]string{"in": "a b c d", "out": "a c", "err": "b"}, exitError,
			[]string{`"d", in line 4`, "request_counts.completed is 3, the files have 2"}},
		{"twice in one file", joined, map[string]string{"in": "a b c d", "out": "a c d d",
			"err": "b"}, exitError, []string{`"d", again in out line 4`}},
		{"in both files", joined, map[string]string{"in": "a b c d", "out": "a c d", "err": "b a"},
			exitError, []string{`"a", again in err line 2`}},
		{"unknown", joined, map[string]string{"in": "a b c d", "out": "a c e", "err": "b"},
			exitError, []string{`"e", out line 3`, `"d", in line 4`}},
		{"input gone", joined, map[string]string{"out": "a", "err": "b"}, exitError,
			[]string{"input file in is gone"}},
		{"by input", apart, map[string]string{"in": "a b", "out": "a b", "in2": "a c", "out2": "c",
			"err2": "a"}, exitOK, []string{"proven"}},
		{"under the wrong input", apart, map[string]string{"in": "a b", "out": "a c", "in2": "a c",
			"out2": "c", "err2": "a"}, exitError,
			[]string{`"c", out line 2`, `"b", in line 2`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fakeAPI(t, test.object, test.files)
			got := must(t, test.status, "verify", "b")
			for _, want := range test.want {
				if !strings.Contains(got.out+got.errors, want) {
					t.Errorf("verify lacks %q:\n%s%s", want, got.out, got.errors)
				}
			}
		})
	}
}
