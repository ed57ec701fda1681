package api

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestCreationOfBatchesIsLogged(t *testing.T) {
	var log bytes.Buffer
	s := newService(t, func(_ *Config, d *Deps) {
		d.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	long := strings.Repeat("ä", 100)
	good := s.create(strings.ReplaceAll(line("a"), `"model":"m"`, `"model":"`+long+`"`))
	faulty := s.create("no JSON")
	for _, want := range []string{
		`msg="batch created" component=api batch_id=` + good["id"].(string) +
			" tenant=default model=" + strings.Repeat("ä", 40) + "… lines=1\n",
		`msg="batch created" component=api batch_id=` + faulty["id"].(string) +
			" tenant=default lines=1\n",
		`msg="batch ended" component=api batch_id=` + faulty["id"].(string) +
			" tenant=default lines=1 state=failed completed=0 failed=0 duration=0s errors=1 " +
			"code=invalid_json_line\n",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks\n%s\nit has\n%s", want, log.String())
		}
	}
}
