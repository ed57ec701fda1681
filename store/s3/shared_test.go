package s3_test

import (
	"io"
	"slices"
	"testing"
	"time"

	servers "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store/s3"
)

// Objects of users have their own names, and the check that one can be written leaves nothing of
// it, not even parts.
func TestSharedBucket(t *testing.T) {
	c := config(t, servers.Start(t).URL)
	shared, err := s3.OpenShared(t.Context(), c, "batch/", s3.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Close(); err != nil {
			t.Error(err)
		}
	})
	names := []string{"batch/100%2F?#", "batch/a b", "batch/\u00fc/\u6f22"}
	for _, name := range names {
		if err := shared.CheckWrite(t.Context(), name); err != nil {
			t.Errorf("check %q: %v", name, err)
		}
	}
	if page, err := shared.List(t.Context(), "", "", 10); err != nil || len(page) > 0 {
		t.Errorf("the checks have left %v, %v", page, err)
	}
	c.Prefix = "batch" // whose parts are collected
	if n, err := open(t, c).Collect(t.Context(), -time.Hour); err != nil || n > 0 {
		t.Errorf("the checks have left parts of %d objects, %v", n, err)
	}
	for _, name := range names {
		w, err := shared.Create(t.Context(), name)
		if err == nil {
			_, err = io.WriteString(w, name)
		}
		if err == nil {
			err = w.Commit(t.Context())
		}
		if err != nil {
			t.Fatalf("write %q: %v", name, err)
		}
		o, err := shared.Open(t.Context(), name)
		if err != nil {
			t.Fatalf("open %q: %v", name, err)
		}
		got, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
		if err != nil || string(got) != name || o.Close() != nil {
			t.Errorf("read %q of %q: %v", got, name, err)
		}
	}
	var listed []string
	for after := ""; ; after = listed[len(listed)-1] { // in pages of one
		page, err := shared.List(t.Context(), "batch/", after, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		listed = append(listed, page[0].Key)
	}
	if !slices.Equal(listed, names) {
		t.Errorf("listed %q, want %q", listed, names)
	}
	if page, err := shared.List(t.Context(), "batch/a", "", 10); err != nil || len(page) != 1 {
		t.Errorf("a prefix without a slash lists %v, %v", page, err)
	}
}
