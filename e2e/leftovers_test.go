package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// checkSwept fails the test unless the next start removes incomplete files that kills left, and
// complete files without a name once they are old.
func checkSwept(t *testing.T, d *Daemon, files map[string]bool) {
	t.Helper()
	d.Kill()
	old := time.Now().Add(-25 * time.Hour)
	for _, stray := range orphans(t, d.Data, files) {
		if err := os.Chtimes(stray, old, old); err != nil {
			t.Fatal(err)
		}
	}
	d.Start()
	d.AwaitReady()
	var left []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(
		50 * time.Millisecond) {
		if left = orphans(t, d.Data, files); len(left) == 0 {
			return
		}
	}
	for _, stray := range left {
		t.Errorf("%s was not removed", stray)
	}
}

// listAll reads all pages of a list and returns the ids. The test fails if an id is in it twice.
func listAll(t *testing.T, c *Client, path string) []string {
	t.Helper()
	var ids []string
	after := ""
	for {
		var page struct {
			Data    []struct{ ID string }
			HasMore bool `json:"has_more"`
		}
		if err := c.json("GET", path+after, "", nil, &page); err != nil {
			t.Fatal(err)
		}
		for _, entry := range page.Data {
			if slices.Contains(ids, entry.ID) {
				t.Fatalf("%s: %s is in the list twice", path, entry.ID)
			}
			ids = append(ids, entry.ID)
		}
		if !page.HasMore {
			return ids
		}
		after = "&after=" + ids[len(ids)-1]
	}
}

// orphans lists the files below blobs and tmp of the data directory that belong to none of files.
func orphans(t *testing.T, data string, files map[string]bool) []string {
	t.Helper()
	var orphans []string
	for _, dir := range []string{"blobs", "tmp"} {
		err := filepath.WalkDir(filepath.Join(data, dir), func(path string, entry os.DirEntry,
			err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			name, _, _ := strings.Cut(entry.Name(), ".")
			if !files[name] && name != "lock" && name != "gate" {
				orphans = append(orphans, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return orphans
}
