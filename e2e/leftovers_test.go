package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// checkSwept fails the test unless the next start removes what kills left half written, and, once
// it is old, what they left whole and without a name.
func checkSwept(t *testing.T, d *Daemon, files map[string]bool) {
	t.Helper()
	d.Kill()
	old := time.Now().Add(-25 * time.Hour)
	for _, stray := range strays(t, d.Data, files) {
		if err := os.Chtimes(stray, old, old); err != nil {
			t.Fatal(err)
		}
	}
	d.Start()
	d.AwaitReady()
	var left []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(
		50 * time.Millisecond) {
		if left = strays(t, d.Data, files); len(left) == 0 {
			return
		}
	}
	for _, stray := range left {
		t.Errorf("%s was left behind", stray)
	}
}

// listAll walks all pages of a list and returns the ids, each of which must come once.
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
				t.Fatalf("%s: %s comes twice", path, entry.ID)
			}
			ids = append(ids, entry.ID)
		}
		if !page.HasMore {
			return ids
		}
		after = "&after=" + ids[len(ids)-1]
	}
}

// strays lists what the data directory keeps below blobs and tmp that belongs to none of files.
func strays(t *testing.T, data string, files map[string]bool) []string {
	t.Helper()
	var strays []string
	for _, dir := range []string{"blobs", "tmp"} {
		err := filepath.WalkDir(filepath.Join(data, dir), func(path string, entry os.DirEntry,
			err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			name, _, _ := strings.Cut(entry.Name(), ".")
			if !files[name] && name != "lock" && name != "gate" {
				strays = append(strays, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return strays
}
