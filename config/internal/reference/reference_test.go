package reference_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/config/internal/reference"
)

const root = "../../.."

func TestPageIsFresh(t *testing.T) {
	want, err := reference.Page(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(root + "/docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/configuration.md is stale; run go generate ./config (-want +got):\n%s", diff)
	}
}

func TestEveryKeyIsExplained(t *testing.T) {
	page, err := reference.Page(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (\S+) \|.*\|  \|$`).FindAllSubmatch(page, -1) {
		t.Errorf("%s has no doc comment", row[1])
	}
}
