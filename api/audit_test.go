package api

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/store"
)

// What users do to batches and files is logged with the beginning of the hash of their key.
func TestWhoChangedABatchIsLogged(t *testing.T) {
	const key = "a-secret-key"
	var log bytes.Buffer
	s := newService(t, func(_ *Config, d *Deps) {
		d.Keys = ringOf(t, "default="+key)
		d.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	as := []string{"Authorization", "Bearer " + key}
	file := s.uploadAs(line("a"), as)
	id := s.batchAs(file, as)
	for _, path := range []string{"pause", "resume", "cancel"} {
		s.post("/v1/batches/"+id+"/"+path, "{}", as...).ok()
	}
	s.change(id, func(b *store.Batch) { b.State = store.Cancelled })
	s.do("DELETE", "/v1/batches/"+id, nil, as...).ok()
	s.do("DELETE", "/v1/files/"+file, nil, as...).ok()
	by := " key=" + HashKey(key)[:len(hashPrefix)+8] + " role=user\n"
	for _, done := range []string{"batch paused", "batch resumed", "batch cancelled by a user",
		"batch deleted", "file deleted"} {
		found := false
		for row := range strings.Lines(log.String()) {
			found = found || strings.Contains(row, `msg="`+done+`"`) && strings.HasSuffix(row, by)
		}
		if !found {
			t.Errorf("the log lacks %q by%s\n%s", done, by, log.String())
		}
	}
	if strings.Contains(log.String(), key) {
		t.Error("the log has the key")
	}
}

func TestKeysAreCountedInWords(t *testing.T) {
	var none *Keyring
	if got := none.String(); got != "none" {
		t.Errorf("no keys are %q", got)
	}
	if got := ringOf(t, "a=k1,a=k2,b=k3").String(); got != "3 keys of 2 tenants" {
		t.Errorf("got %q", got)
	}
}
