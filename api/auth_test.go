package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	keys, err := parseKeysFile([]byte("keys:\n- {hash: " + HashKey("look") +
		", tenant: a, role: viewer}\n- {hash: " + HashKey("key-b") + ", tenant: b}\n"))
	if err != nil {
		t.Fatal(err)
	}
	fromEnvironment, err := ParseKeys(" plain , a=key-a,")
	if err != nil {
		t.Fatal(err)
	}
	if keys, err = keys.Join(fromEnvironment); err != nil {
		t.Fatal(err)
	}
	s := newService(t, func(_ *Config, d *Deps) { d.Keys = keys })

	for _, path := range []string{"/v1/files", "/v1/files/file-none", "/v1/models", "/nowhere"} {
		for header, code := range map[string]string{
			"": "", "Bearer": "", "Bearer ": "", "Basic a2V5": "", "key-a": "",
			"Bearer wrong": "invalid_api_key", "Bearer key-a x": "invalid_api_key",
			"Bearer " + HashKey("key-a"): "invalid_api_key",
		} {
			a := s.get(path, "Authorization", header)
			a.refused(401, "", code)
			if strings.Contains(a.body, "wrong") {
				t.Errorf("the answer %s contains the key", a.body)
			}
		}
	}

	body, contentType := encodeForm(t, field{name: "purpose", value: "batch"},
		field{name: "file", filename: "in.jsonl", value: line("a")})
	id := s.do("POST", "/v1/files", body, "Content-Type", contentType, "Authorization",
		"bearer  key-a").ok()["id"].(string)
	for _, key := range []string{"key-b", "plain"} {
		for _, path := range []string{"/v1/files/" + id, "/v1/files/" + id + "/content"} {
			s.get(path, "Authorization", "Bearer "+key).refused(404, "id", "",
				"No such File object: "+id)
		}
		s.do("DELETE", "/v1/files/"+id, nil, "Authorization", "Bearer "+key).refused(404, "id", "",
			"No such File object: "+id)
		if data := s.get("/v1/files", "Authorization", "Bearer "+key).ok()["data"].([]any); len(
			data) > 0 {
			t.Errorf("%s sees %v", key, data)
		}
	}
	s.get("/v1/files/"+id, "Authorization", "Bearer look").ok()
	s.do("DELETE", "/v1/files/"+id, nil, "Authorization", "Bearer look").refused(403, "",
		"insufficient_permissions")
	s.do("DELETE", "/v1/files/"+id, nil, "Authorization", "Bearer key-a").ok()
}

func TestKeysRefused(t *testing.T) {
	for _, list := range []string{"a=", "=key", "a b=key", "bad key", "abc==",
		"a=k,b=k", strings.Repeat("t", 65) + "=k"} {
		if _, err := ParseKeys(list); err == nil {
			t.Errorf("%q was accepted", list)
		} else if strings.Contains(err.Error(), "key,") || strings.Contains(err.Error(),
			"bad key") {
			t.Errorf("%q: the error %q contains a key", list, err)
		}
	}
	hash := HashKey("k")
	for text, want := range map[string]string{
		"":                                 "no keys",
		"keys: []":                         "no keys",
		"keys: [{hash: k}]":                "keys[0]: hash",
		"keys: [{hash: sha256:00}]":        "sha256sum",
		"keys: [{hash: " + hash[7:] + "}]": "sha256:",
		"keys: [{hash: " + hash + ", tenant: 'a b'}]":        "tenant",
		"keys: [{hash: " + hash + ", role: king}]":           "viewer, user or admin",
		"keys: [{hash: " + hash + ", rolle: user}]":          "rolle",
		"keys: [{hash: " + hash + "}, {hash: " + hash + "}]": "keys[1]: the same key",
		"keys: [{hash: x}, {hash: " + hash + ", role: x}]":   "keys[1]: role",
		"keys: {": "1: did not find expected node content",
		"keys:\n- tenant: t\n  sha256: x\n": "3: keys[0]: unknown key sha256; an entry " +
			"has the keys hash, tenant, role, name, created",
		"key: []":                         "1: the file: unknown key key; it has the key keys",
		"# x\n- a":                        "2: the file is not a section",
		"keys: x":                         "1: keys is not a list",
		"keys:\n- x":                      "2: keys[0] is not a section",
		"keys:\n- hash: [a]":              "2: keys[0].hash is not a text",
		"keys:\n- {hash: a}\n- {hash: b}": "3: keys[1]: hash is not",
		"keys:\n- {hash: a, hash: b}":     "2: keys[0] has hash twice",
		"keys:\nb: [1\nc: 2":              "2: did not find expected ','",
	} {
		if _, err := parseKeysFile([]byte(text)); err == nil || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%q: got error %v, want one with %q", text, err, want)
		}
	}
}

func TestLoadKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	if _, err := LoadKeys(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got error %v for a missing file, want one with its path", err)
	}
	if err := os.WriteFile(path, []byte("keys: [{hash: "+HashKey("k")+", tenant: t, role: admin, "+
		"name: n, created: 2027-01-31}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	ring, err := LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	admin := principal{Tenant: "t", Role: roleAdmin}
	if owner, ok := ring.find("k"); !ok || owner.owner != admin {
		t.Errorf("got %v, %v; want the admin of t", owner, ok)
	}
	// as documented: printf %s k | sha256sum
	const want = "sha256:8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a"
	if got := HashKey("k"); got != want {
		t.Errorf("got hash %s, want %s", got, want)
	}
}

func TestWithoutKeysAnyoneIsAdmitted(t *testing.T) {
	var none *Keyring
	if !none.Empty() {
		t.Error("a nil keyring is not empty")
	}
	s := newService(t)
	s.get("/v1/files", "Authorization", "Bearer whatever").ok()
}

func FuzzParseKeys(f *testing.F) {
	f.Add("a=b,c")
	f.Fuzz(func(t *testing.T, list string) {
		ring, err := ParseKeys(list)
		if (ring == nil) == (err == nil) {
			t.Fatalf("got %v, %v", ring, err)
		}
	})
}
