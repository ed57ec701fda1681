package reference_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/config/internal/reference"
)

const root = "../../.."

func TestPagesAreFresh(t *testing.T) {
	for name, render := range reference.Pages() {
		want, err := render(root)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(root + "/docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("docs/%s is stale; run go generate ./config (-want +got):\n%s", name, diff)
		}
	}
}

func TestEveryKeyIsExplained(t *testing.T) {
	for name, render := range reference.Pages() {
		page, err := render(root)
		if err != nil {
			t.Fatal(err)
		}
		empty := regexp.MustCompile(`(?m)^\| (\S+) \|.*\|  \|$`)
		for _, row := range empty.FindAllSubmatch(page, -1) {
			t.Errorf("%s: %s has no doc comment", name, row[1])
		}
	}
}
