package registry_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/internal/strictyaml"
	"github.com/tidefill/tidefill/registry"
)

// Texts of refused items quote values. What looks like a secret is hidden in all of them, and so in
// logs, /readyz, the console and commands.
func TestRefusalsHideSecrets(t *testing.T) {
	for _, value := range []string{
		`--api-key=TOPSECRET`, `--hf-token TOPSECRET`, `HF_TOKEN=TOPSECRET`, `accessToken=TOPSECRET`,
		`Bearer TOPSECRET`, `Basic TOPSECRET`, `X-Api-Key: TOPSECRET`, `x-api-key:TOPSECRET`,
		`{\"api_key\": \"TOPSECRET\"}`, `{\"api_key\":\"TOPSECRET\"}`, `{'api_key': 'TOPSECRET'}`,
		`http://me:TOPSECRET@h`, `http://h/?a=b&api_key=TOPSECRET&c=d`, `a=b;token=TOPSECRET`,
		`sk-TOPSECRETTOPSECRET`, `ghp_TOPSECRETTOPSECRET`, `AKIATOPSECRETTOPSECRET`,
	} {
		for _, document := range []string{
			template("status: active=>status: \"" + value + "\""),
			template("serve_args: [--port=8000]=>serve_args: \"" + value + "\""),
			template("uri: org/model=>\"" + value + "\": x"),
		} {
			got := strings.Join(refused(read(nil, document)), "\n")
			if got == "" || strings.Contains(got, "TOPSECRET") {
				t.Errorf("%s: %q", value, got)
			}
		}
	}
	for _, document := range []string{
		template("auth_secret_ref: hf-token=>auth_secret_ref: [TOPSECRET]"),
		external("api_key_env: TOP-SECRET"), external("api_key_env: {a: TOPSECRET}"),
		external("api_key_env: hf_TOPSECRETTOPSECRET"), external("api_key_file: TOPSECRET"),
		external("requests_per_minute: TOPSECRET"), external("api_key: TOPSECRET"),
		profiles("secret_ref: s=>secret_ref: TOP/SECRET/TOPSECRET"),
		template("status: active=>status: \"" + strings.Repeat("x", 1<<20) + "\""),
		template("name: llama=>name: \"" + strings.Repeat("x", 1<<20) + "\""),
	} {
		c := read(nil, document)
		got := strings.Join(refused(c), "\n")
		if got == "" || strings.Contains(got, "SECRET") || len(got) > 5000 {
			t.Errorf("%.2000q", got)
		}
		for _, f := range c.Faults() {
			if strings.Contains(f.String(), "SECRET") {
				t.Errorf("all faults: %.2000q", f.String())
			}
		}
	}
}

// external returns a document with an external template with one more setting.
func external(setting string) string {
	return template("{type: k8s, namespace: batch}=>{type: external, base_url: http://h, "+setting+
		"}", "dedicated=>external")
}

func TestNodesHideSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"{credentials: {user: TOPSECRET, value: [TOPSECRET]}}": `{"credentials":{"user":"***",` +
			`"value":["***"]}}`,
		"{env: [{name: HF_TOKEN, value: TOPSECRET}, {name: A, value: b}]}": `{"env":[{"name":` +
			`"HF_TOKEN","value":"***"},{"name":"A","value":"b"}]}`,
		"{secret: {name: where, key: TOPSECRET}}": `{"secret":{"name":"where","key":"***"}}`,
		"{max_tokens: 7, tokenizer: a/b, image: key-value:v1}": `{"max_tokens":7,` +
			`"tokenizer":"a/b","image":"key-value:v1"}`,
		"[--seed=7, --api-key, TOPSECRET, '--header', 'X-Api-Key: TOPSECRET']": `["--seed=7",` +
			`"--api-key","***","--header","X-Api-Key: ***"]`,
	} {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		registry.HideSecrets(n.Content[0])
		if got := string(strictyaml.JSON(n.Content[0])); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
