package openai

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestModelsAreRead(t *testing.T) {
	long := strings.Repeat("x", MaxModelName+1)
	for name, c := range map[string]struct {
		answer string
		want   []string
		cut    bool
		err    string
	}{
		"a list": {
			`{"object":"list","data":[{"id":"a","owned_by":"b"},{"id":"b"},{"id":"a"},{"id":""}],"more":{"x":[1]}}`, []string{"a", "b"}, false, ""},
		"more than wanted": {`{"data":[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"},{"id":"e"}]}`,
			[]string{"a", "b", "c", "d"}, true, ""},
		"as many": {`{"data":[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"}]}`,
			[]string{"a", "b", "c", "d"}, false, ""},
		"a long name": {`{"data":[{"id":"` + long + `"},{"id":"b"}]}`, []string{"b"}, true,
			""},
		"none":      {`{"data":[]}`, nil, false, "names no model"},
		"no list":   {`{"data":null}`, nil, false, "no list of models"},
		"no object": {`[]`, nil, false, "no list of models"},
		"no models": {`{"data":["a"]}`, nil, false, "no list of models"},
		"cut":       {`{"data":[{"id":"a"`, nil, false, "no list of models"},
		"empty":     {``, nil, false, "no list of models"},
		"without end": {`{"data":[` + strings.Repeat(`{"id":"a"},`, maxModelBytes/10),
			[]string{"a"}, true, ""},
		"one without end": {`{"data":[{"id":"` + strings.Repeat(`a`, maxModelBytes), nil, false,
			"longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := start(t, func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, c.answer)
			})
			got, err := clientOf(t, s.URL).Models(t.Context(), 4)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(
				err.Error(), c.err) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if !slices.Equal(got.Names, c.want) || got.Cut != c.cut {
				t.Errorf("got %v, cut %v; want %v, %v", got.Names, got.Cut, c.want, c.cut)
			}
		})
	}
}

func TestModelsKeepTheConnection(t *testing.T) {
	s, conns := start(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"data":[{"id":"a"}]}%10000s`, "")
	})
	c := clientOf(t, s.URL)
	for range 3 {
		if _, err := c.Models(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
	}
	if conns.Load() != 1 {
		t.Errorf("%d connections, want 1", conns.Load())
	}
}
