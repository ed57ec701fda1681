package reference_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/config/internal/reference"
)

const root = "../../.."

func render(t *testing.T) string {
	t.Helper()
	page, err := reference.Page(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestPageIsFresh(t *testing.T) {
	got, err := os.ReadFile(root + "/docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(render(t), string(got)); diff != "" {
		t.Errorf("docs/configuration.md is stale; run go generate ./config (-want +got):\n%s", diff)
	}
}

func TestEveryKeyIsExplained(t *testing.T) {
	empty := regexp.MustCompile(`(?m)^\| (\S+) \|.*\|  \|$`)
	for _, row := range empty.FindAllStringSubmatch(render(t), -1) {
		t.Errorf("%s has no doc comment", row[1])
	}
}

// A key is for what two users would choose differently. Everything else is a constant, with its
// reason, where it is used.
func TestKeysAreFew(t *testing.T) {
	const limit = 260
	rows := regexp.MustCompile("(?m)^\\| `")
	if n := len(rows.FindAllString(render(t), -1)); n > limit {
		t.Errorf("%d keys are described, want at most %d", n, limit)
	}
}
