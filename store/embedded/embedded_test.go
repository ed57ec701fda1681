package embedded_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/embedded"
)

func TestOpenIsExclusiveForANode(t *testing.T) {
	backend, err := store.FindBackend(embedded.Name)
	if err != nil {
		t.Fatal(err)
	}
	open := backend.Open
	options := store.OpenOptions{Config: backend.Default, Directory: t.TempDir(),
		Node: "a", Expiry: time.Now}
	first, err := open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), options); err == nil || !strings.Contains(err.Error(), "name") {
		t.Errorf("opened twice under one name: %v", err)
	}
	other := options
	other.Node = "b"
	second, err := open(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	again, err := open(t.Context(), options)
	if err != nil {
		t.Fatalf("open after close: %v", err)
	}
	for _, b := range []*store.Backend{second, again} {
		if err := b.Available(); err != nil {
			t.Errorf("available: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}
