package batchfile_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/tidefill/tidefill/internal/batchfile"
)

func TestMembersAndElementsStandAsTheyWere(t *testing.T) {
	object := []byte(" { \"a\" : 1e400 , \"\\u0062\":[ 1,\"x\\ny\" , {} ],\"a\":null} ")
	var got []string
	for key, value := range batchfile.Members(object) {
		got = append(got, key+"="+string(value))
		for element := range batchfile.Elements(value) {
			got = append(got, string(element))
		}
	}
	want := []string{"a=1e400", `b=[ 1,"x\ny" , {} ]`, "1", `"x\ny"`, "{}", "a=null"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"a":[1,2]}`, `{"a":`, `[1,[2]]`, `[1,`, `[1,]`, `x`,
		`{"\ud800":0}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n := 0
		for _, value := range batchfile.Members(text) {
			n++
			if !json.Valid(value) {
				t.Fatalf("%q yields %q", text, value)
			}
		}
		var object map[string]json.RawMessage
		if batchfile.IsObject(text) && json.Unmarshal(text, &object) == nil && len(object) > n {
			t.Errorf("%q has %d members, got %d", text, len(object), n)
		}
		n = 0
		for range batchfile.Elements(text) {
			n++
		}
		var array []json.RawMessage
		if json.Unmarshal(text, &array) == nil && len(array) != n {
			t.Errorf("%q has %d elements, got %d", text, len(array), n)
		}
	})
}
