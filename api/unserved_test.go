package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCreateOfAnUnservedModelFails(t *testing.T) {
	const sentence = `model "smal" is served by no runner; served: m. Did you mean "m"?`
	knows := func(c *Config, d *Deps) {
		d.UnservedModels = func(_ context.Context, models []string) (map[string]string, error) {
			got := map[string]string{}
			for _, m := range models {
				if m != "m" {
					got[m] = strings.Replace(sentence, "smal", m, 1)
				}
			}
			return got, nil
		}
	}
	chat := func(id, model string) string { return lineFor(id, "/v1/chat/completions", model) }
	s := newService(t, knows)
	b := s.create(chat("a", "m") + "\n" + chat("b", "smal") + chat("c", "other") +
		chat("d", "smal"))
	var got []string
	for _, e := range b["errors"].(map[string]any)["data"].([]any) {
		e := e.(map[string]any)
		got = append(got, fmt.Sprint(e["line"], " ", e["code"], " ", e["param"], " ",
			e["message"]))
	}
	want := []string{"3 model_not_found body.model " + sentence,
		"4 model_not_found body.model " + strings.Replace(sentence, "smal", "other", 1)}
	if diff := cmp.Diff(want, got); diff != "" || b["status"] != "failed" {
		t.Errorf("status %v, errors (-want +got): %s", b["status"], diff)
	}
	if b := s.create(chat("a", "m")); b["status"] != "validating" {
		t.Errorf("got status %v of a served model", b["status"])
	}
	waits := newService(t, knows, func(c *Config, _ *Deps) { c.UnknownModels = "wait" })
	if b := waits.create(chat("a", "smal")); b["status"] != "validating" {
		t.Errorf("got status %v, want a batch that waits", b["status"])
	}
}

// An error of the store leaves no batch.
func TestCreateFailsIfModelsCannotBeChecked(t *testing.T) {
	s := newService(t, func(_ *Config, d *Deps) {
		d.UnservedModels = func(context.Context, []string) (map[string]string, error) {
			return nil, errors.New("no leaders")
		}
	})
	file := s.upload(line("a"))
	s.post("/v1/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions",`+
		`"completion_window":"24h"}`, file)).refused(http.StatusInternalServerError, "", "")
	if all := s.get("/v1/batches").ok()["data"].([]any); len(all) != 0 {
		t.Errorf("got %v, want no batch", all)
	}
}

func TestUnknownModelsIsChecked(t *testing.T) {
	c := DefaultConfig()
	c.UnknownModels = "sometimes"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(),
		`unknown_models is "sometimes"; set it to fail or wait`) {
		t.Errorf("got %v", err)
	}
}
