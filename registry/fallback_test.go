package registry_test

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/registry"
)

func TestFallbacksAreValidated(t *testing.T) {
	good := registry.Fallback{URL: "https://api.example.com/v1", APIKeyEnv: "CLOUD_KEY",
		Models:      map[string]string{"m": "cloud/m"},
		MoneyPerDay: 20, PriceInput: 0.5, PriceOutput: 1.5}
	validate := func(change func(*registry.Fallback)) string {
		p := registry.Pool{Name: "gpus", Models: []string{"m"}, Max: 1, Fallback: good}
		change(&p.Fallback)
		if err := p.Validate(); err != nil {
			return err.Error()
		}
		return ""
	}
	for _, change := range []func(*registry.Fallback){
		func(*registry.Fallback) {},
		func(f *registry.Fallback) { *f = registry.Fallback{} },
		func(f *registry.Fallback) { f.MoneyPerDay, f.RequestsPerMinute = 0, 10 },
		func(f *registry.Fallback) { f.APIKeyEnv, f.APIKeyFile = "", "/run/key" },
	} {
		if fault := validate(change); fault != "" {
			t.Error(fault)
		}
	}
	const key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
	for want, change := range map[string]func(*registry.Fallback){
		"fallback.url: is empty": func(f *registry.Fallback) { f.URL = "" },
		"fallback.url: must be": func(f *registry.Fallback) {
			f.URL = "https://u:" + key + "@x"
		},
		"fallback.url: has a query": func(f *registry.Fallback) { f.URL += "?key=" + key },
		"fallback.url: ends in": func(f *registry.Fallback) {
			f.URL += "/chat/completions"
		},
		"fallback.models: is empty": func(f *registry.Fallback) { f.Models = nil },
		"fallback.models.x: is no model of": func(f *registry.Fallback) {
			f.Models = map[string]string{"x": "y"}
		},
		"fallback.models.m: is empty": func(f *registry.Fallback) {
			f.Models = map[string]string{"m": " "}
		},
		"fallback.api_key_env: must be": func(f *registry.Fallback) { f.APIKeyEnv = key },
		"fallback.api_key_file: must be": func(f *registry.Fallback) {
			f.APIKeyEnv, f.APIKeyFile = "", key
		},
		"fallback.api_key_file: is set beside": func(f *registry.Fallback) { f.APIKeyFile = "/k" },
		"fallback.money_per_day: is 0":         func(f *registry.Fallback) { f.MoneyPerDay = 0 },
		"fallback.money_per_day: is -1":        func(f *registry.Fallback) { f.MoneyPerDay = -1 },
		"fallback.price_input: is 0": func(f *registry.Fallback) {
			f.PriceInput, f.PriceOutput = 0, 0
		},
		"fallback.requests_per_minute: is -1": func(f *registry.Fallback) {
			f.RequestsPerMinute = -1
		},
	} {
		fault := validate(change)
		if !strings.Contains(fault, want) || strings.Contains(fault, key) {
			t.Errorf("got %q, want %q, without the key", fault, want)
		}
	}
}
