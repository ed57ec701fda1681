package api

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/store"
)

// An operator finds batches of all tenants by all that is asked for, page by page.
func TestSearch(t *testing.T) {
	s := newService(t)
	var all []string
	for i := range 12 {
		id := s.create(line("a"), fmt.Sprintf(`"metadata":{"run":"%d"}`, i%3))["id"].(string)
		s.change(id, func(b *store.Batch) {
			b.State = []store.State{store.InProgress, store.Completed}[i%2]
		})
		all = append(all, id)
	}
	slices.Reverse(all) // the newest, 11, is first
	for query, want := range map[string][]int{
		"":                                  {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
		"status=completed&metadata[run]=2":  {11, 5},
		"metadata[run]=0":                   {9, 6, 3, 0},
		"metadata[run]":                     {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
		"metadata[none]":                    {},
		"model=M":                           {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
		"model=x":                           {},
		"tenant=other":                      {},
		"tenant=default&id=" + all[3]:       {8},
		"id=" + all[3][:len(all[3])-2] + "": {8},
		"after=" + all[9]:                   {1, 0},
	} {
		v, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for pages := 0; ; pages++ {
			q, known, err := ReadSearch(v)
			if err != nil || known != (len(v) > 0) {
				t.Fatalf("%q: known %t, %v", query, known, err)
			}
			q.Limit = 2
			ids, next, err := s.server.Search(t.Context(), q)
			if err != nil || len(ids) > 2 {
				t.Fatalf("%q: %v, %v", query, ids, err)
			}
			for _, id := range ids {
				got = append(got, 11-slices.Index(all, id))
			}
			if next == "" {
				break
			}
			v.Set("after", next)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, want %v", query, got, want)
		}
	}
	if _, _, err := ReadSearch(url.Values{"status": {"soon"}}); err == nil ||
		!strings.Contains(err.Error(), "soon") {
		t.Errorf("an unknown status: %v", err)
	}
}
