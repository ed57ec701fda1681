package console_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/app/console"
	"github.com/tidefill/tidefill/registry"
)

const templates = `- name: llama
  version: v1
  description: for nights
  visible_to: [a]
  spec:
    engine:
      type: vllm
      version: "0.11.0"
      image: vllm:v0.11.0
      serve_args: [--port=8000, --api-key=TOPSECRET1, --hf-token, TOPSECRET2, --seed, "7",
        "HF_TOKEN=TOPSECRET3 vllm serve --api-key TOPSECRET4 --max-model-len 4096",
        '--header=Bearer TOPSECRET5', '--config={"api_key": "TOPSECRET6", "a": "b"}',
        "https://me:TOPSECRET7@host/x", hf_TOPSECRET8TOPSECRET8]
    model_source: {type: huggingface, uri: org/model, auth_secret_ref: hf-token}
    accelerator: {type: H100, count: 4}
    parallelism: {tp: 4}
    engine_args: {max_num_batched_tokens: 4096, api_keys: [TOPSECRET9], odd: 1e3}
    provider_config: {type: k8s, password: 7770777, api_key_env: VARIABLE}
    supported_endpoints: [/v1/chat/completions]
    service_id: x
- name: other
  spec: {engine: {type: tgi}}
- name: third
  spec: {engine: {serve_args: --api-key=TOPSECRET10}}
`

const nights = `default: night
items:
- name: night
  spec:
    storage: {backend: minio, bucket: b, endpoint_url: "http://me:TOPSECRET11@minio",
      credentials_secret_ref: minio-keys}
`

const teams = `- {name: a, spec: {useCases: [{modelName: m}], poolRef: [{name: prod}]}}
- {name: b, spec: {useCases: [{modelName: m}], poolRef: [{name: gone}]}}
`

func catalogs(texts ...string) *registry.Catalogs {
	var documents []registry.Document
	for i, text := range texts {
		name := []string{"t.yaml", "p.yaml", "u.yaml"}[i]
		documents = append(documents, registry.Document{Name: name, Text: []byte(text)})
	}
	return new(registry.Catalogs).Next(began.Add(-time.Minute), documents)
}

func TestRegistryIsShownWithoutSecrets(t *testing.T) {
	deps := newDeps("m")
	deps.Registry = func() (*registry.Catalogs, error) {
		return catalogs(templates, nights, teams), nil
	}
	deps.RegistrySources = func() []console.RegistrySource {
		return []console.RegistrySource{{Name: "/etc/registry"},
			{Name: "cluster", Err: errors.New("is away")}}
	}
	answer := serve(t, deps, "/admin/registry")
	got := decode[map[string]any](t, answer)
	text := answer.Body.String()
	for _, secret := range []string{"TOPSECRET", "7770777"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is shown: %s", secret, text)
		}
	}
	for _, want := range []string{`"--port=8000","--api-key=***","--hf-token","***","--seed","7",`,
		`"HF_TOKEN=*** vllm serve --api-key *** --max-model-len 4096"`, `"--header=Bearer ***"`,
		`\"a\": \"b\"}"`, `"https://***@host/x","***"]`, `"auth_secret_ref":"hf-token"`,
		`"api_key_env":"VARIABLE"`, `"max_num_batched_tokens":4096`, `"odd":1000`,
		`"ready_timeout_seconds":600`, `"pp":1`, `"credentials_secret_ref":"minio-keys"`,
		`"max_concurrency":256`, `"default_profile":"night"`, `"visible_to":["a"]`,
		`"description":"for nights"`, `"warnings":["spec.service_id has no effect"]`,
		`"use_cases":[{"name":"a","description":"","visible_to":[],"document":"u.yaml","row":1,` +
			`"kept":false,"warnings":[],"spec":{"useCases":[{"modelName":"m","objective":null,` +
			`"targetModels":[{"targetModelName":"m","weight":1}],"class":"standard","weight":1,` +
			`"tenants":null,"sticky":"none"}],"poolRef":[{"name":"prod"}]},"conditions":[{"type":` +
			`"Accepted","status":true,"reason":"Accepted","message":"The use cases are in force."}]`,
		`"status":false,"reason":"PoolNotFound"`,
		`"sources":[{"name":"/etc/registry","error":null},{"name":"cluster","error":"is away"}]`,
		`"kind":"template","name":"other","version":"v1.0.0","document":"t.yaml","row":22,` +
			`"path":"spec.engine.type"`, `is \"--api-key=*** must be a list"`, `"kept":false,"since":`, `"age_seconds":60`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the answer lacks %s: %s", want, text)
		}
	}
	want := []string{"default_profile", "object", "profiles", "refused", "sources", "templates",
		"time", "unknown", "use_cases"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" ||
		got["object"] != "registry" || got["unknown"] != nil {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// Nothing is null but what is none: a page and a client iterate over the lists.
func TestRegistryMayBeEmptyOrUnknown(t *testing.T) {
	deps := newDeps("m")
	body := serve(t, deps, "/admin/registry").Body.String()
	if want := `"unknown":null,"templates":[],"profiles":[],"use_cases":[],"default_profile":null,"refused":[],` +
		`"sources":[]}`; !strings.Contains(body, want) {
		t.Errorf("got %s", body)
	}
	deps.Registry = func() (*registry.Catalogs, error) {
		return new(registry.Catalogs), errors.New("not read")
	}
	if body := serve(t, deps, "/admin/registry").Body.Bytes(); !json.Valid(body) ||
		!strings.Contains(string(body), `"unknown":"not read"`) {
		t.Errorf("got %s", body)
	}
}
