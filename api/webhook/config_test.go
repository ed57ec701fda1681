package webhook

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	good := Endpoint{Name: "ops", URL: "https://example.com/hook", SecretEnv: "S"}
	if err := Validate([]Endpoint{good}); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Endpoint){
		`[0].name: is "Ops"`:              func(e *Endpoint) { e.Name = "Ops" },
		"[0].url: is no URL":              func(e *Endpoint) { e.URL = "ftp://x" },
		"[0].url: has a user":             func(e *Endpoint) { e.URL = "https://u:p4ss@x/" },
		"[0].secret_env: is empty":        func(e *Endpoint) { e.SecretEnv = "" },
		`Did you mean "batch.completed"?`: func(e *Endpoint) { e.Events = []string{"batch.complete"} },
		"[0].tenants[0]: is empty":        func(e *Endpoint) { e.Tenants = []string{""} },
	} {
		bad := good
		change(&bad)
		err := Validate([]Endpoint{bad})
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "p4ss") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := Validate([]Endpoint{good, good}); err == nil || !strings.Contains(err.Error(),
		"[1].name: endpoint 0 is named") {
		t.Errorf("two of one name: %v", err)
	}
}

func TestSecrets(t *testing.T) {
	for _, text := range []string{"", " ", "hunter2", "whsec_", "whsec_hunter2",
		secretPrefix + base64.StdEncoding.EncodeToString([]byte("hunter2")),
		testSecret + " hunter2", testSecret + "," + testSecret} {
		s, err := newSigner(text)
		if err == nil {
			t.Errorf("%q was taken as a secret", text)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows the secret: %v", err)
		}
		_ = s
	}
	old := secretPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("o", 24)))
	s, err := newSigner(testSecret + " " + old)
	if err != nil {
		t.Fatal(err)
	}
	both := strings.Fields(s.sign("id", 1, []byte("{}")))
	one, _ := newSigner(old)
	if len(both) != 2 || both[1] != one.sign("id", 1, []byte("{}")) || both[0] == both[1] {
		t.Errorf("the signatures are %v", both)
	}
	if shown := fmt.Sprintf("%v %+v %#v %s", s, s, s, s); strings.Contains(shown, "ooo") ||
		strings.Contains(shown, "111") {
		t.Errorf("a signer shows its keys: %s", shown)
	}
	_, err = New([]Endpoint{{Name: "a", URL: "http://a", SecretEnv: "UNSET_SECRET"}},
		Deps{Getenv: env{}.get})
	if err == nil || !strings.Contains(err.Error(), "UNSET_SECRET is not set") {
		t.Errorf("got %v", err)
	}
}
