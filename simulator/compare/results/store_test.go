package results_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tidefill/tidefill/simulator/compare/results"
)

func TestALineThatWasCutOffIsIgnored(t *testing.T) {
	dir := t.TempDir()
	s, err := results.Open[int](dir, "x.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put("a", 1); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "x.jsonl")
	content, _ := os.ReadFile(file)
	if err := os.WriteFile(file, append(content, `{"key":"b","val`...), 0o666); err != nil {
		t.Fatal(err)
	}
	if s, err = results.Open[int](dir, "x.jsonl"); err != nil {
		t.Fatal(err)
	}
	if err := s.Put("c", 3); err != nil {
		t.Fatal(err)
	}
	if s, err = results.Open[int](dir, "x.jsonl"); err != nil {
		t.Fatal(err)
	}
	a, hasA := s.Get("a")
	_, hasB := s.Get("b")
	c, hasC := s.Get("c")
	if !hasA || hasB || !hasC || a != 1 || c != 3 {
		t.Errorf("a %d %v, b %v, c %d %v", a, hasA, hasB, c, hasC)
	}
}
