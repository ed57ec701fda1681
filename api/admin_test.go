package api

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newTenants serves tenants a and b, and an administrator of the tenant ops.
func newTenants(t *testing.T) *service {
	keys := tenantKeys(t)
	return newService(t, func(_ *Config, d *Deps) { d.Keys = keys })
}

// tenantKeys returns the keys of newTenants.
func tenantKeys(t *testing.T) *Keyring {
	t.Helper()
	var file strings.Builder
	file.WriteString("keys:\n")
	for _, key := range []string{"a user", "a viewer", "b user", "ops admin"} {
		tenant, role, _ := strings.Cut(key, " ")
		fmt.Fprintf(&file, "- {hash: %s, tenant: %s, role: %s}\n", HashKey(tenant+"-"+role),
			tenant, role)
	}
	keys, err := parseKeysFile([]byte(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// as returns the headers of a request with a key that acts for a tenant; empty: its own.
func as(key, tenant string) []string {
	header := []string{"Authorization", "Bearer " + key}
	if tenant != "" {
		header = append(header, TenantHeader, tenant)
	}
	return header
}

// uploadAs uploads an input file and returns its id.
func (s *service) uploadAs(content string, header []string) string {
	s.t.Helper()
	body, contentType := encodeForm(s.t, field{name: "purpose", value: "batch"},
		field{name: "file", filename: "in.jsonl", value: content})
	return s.do("POST", "/v1/files", body, append([]string{"Content-Type", contentType},
		header...)...).ok()["id"].(string)
}

func (s *service) batchAs(file string, header []string) string {
	s.t.Helper()
	return s.post("/v1/batches", `{"input_file_id": "`+file+
		`", "endpoint": "/v1/chat/completions", "completion_window": "24h"}`,
		header...).ok()["id"].(string)
}

// registered lists the routes of objects as METHOD path, from the sources.
func registered(t *testing.T) map[string]bool {
	t.Helper()
	routes := map[string]bool{}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	route := regexp.MustCompile(`s\.route\("(/v1/[^"]*\{id\}[^"]*)", methods\{([^}]*)\}`)
	method := regexp.MustCompile(`"([A-Z]+)":`)
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range route.FindAllStringSubmatch(string(text), -1) {
			for _, of := range method.FindAllStringSubmatch(m[2], -1) {
				routes[of[1]+" "+m[1]] = true
			}
		}
	}
	return routes
}

// On every route an admin may act for a tenant, and nobody else may.
func TestAdminActsForAnyTenant(t *testing.T) {
	s := newTenants(t)
	owner, admin := as("a-user", ""), as("ops-admin", "a")
	file := s.uploadAs(line("1"), owner)
	running := s.batchAs(file, owner)
	ended := s.batchAs(s.uploadAs("no JSON\n", owner), owner)
	upload := s.post("/v1/uploads", `{"filename": "in.jsonl", "purpose": "batch", "bytes": 10, `+
		`"mime_type": "application/jsonl"}`, owner...).ok()["id"].(string)
	left := registered(t)
	if len(left) < 14 {
		t.Fatalf("found the routes %v only", left)
	}
	for _, c := range []struct {
		method, path, id string
		status           int // of the admin; 0: 200
	}{
		{"GET", "/v1/files/{id}", file, 0}, {"GET", "/v1/files/{id}/content", file, 0},
		{"POST", "/v1/uploads/{id}/parts", upload, 400}, // without a part
		{"POST", "/v1/uploads/{id}/complete", upload, 400},
		{"POST", "/v1/uploads/{id}/cancel", upload, 0},
		{"GET", "/v1/batches/{id}", running, 0}, {"POST", "/v1/batches/{id}/pause", running, 0},
		{"POST", "/v1/batches/{id}", running, 400}, // without a priority
		{"POST", "/v1/batches/{id}/resume", running, 0},
		{"POST", "/v1/batches/{id}/cancel", running, 0},
		{"GET", "/v1/batches/{id}/events", ended, 0},
		{"GET", "/v1/batches/{id}/results", ended, 0},
		{"POST", "/v1/batches/{id}/retry", ended, 400}, // no line has failed
		{"DELETE", "/v1/batches/{id}", ended, 0}, {"DELETE", "/v1/files/{id}", file, 0},
	} {
		route := c.method + " " + c.path
		if !left[route] {
			t.Errorf("%s is no route", route)
		}
		delete(left, route)
		path := strings.ReplaceAll(c.path, "{id}", c.id)
		for _, refused := range []struct {
			header []string
			status int
		}{{as("b-user", ""), 404}, {as("ops-admin", ""), 404}, {as("ops-admin", "b"), 404},
			{as("b-user", "a"), 403}} {
			if a := s.do(c.method, path, nil, refused.header...); a.status != refused.status {
				t.Errorf("%s with %q: got %d %s, want %d", route, refused.header[1:], a.status,
					a.body, refused.status)
			}
		}
		want := c.status
		if want == 0 {
			want = 200
		}
		if a := s.do(c.method, path, nil, admin...); a.status != want {
			t.Errorf("%s as admin: got %d %s, want %d", route, a.status, a.body, want)
		}
	}
	for route := range left {
		t.Errorf("%s is not tested", route)
	}
}

func TestAdminCreatesAndListsForATenant(t *testing.T) {
	s := newTenants(t)
	admin := as("ops-admin", "a")
	file := s.uploadAs(line("1"), admin)
	batch := s.batchAs(file, admin)
	for _, path := range []string{"/v1/files", "/v1/batches"} {
		for _, c := range []struct {
			header []string
			want   int
		}{{as("a-user", ""), 1}, {as("a-viewer", "a"), 1}, {admin, 1}, {as("ops-admin", ""), 0},
			{as("b-user", ""), 0}} {
			if data := s.get(path, c.header...).ok()["data"].([]any); len(data) != c.want {
				t.Errorf("%s with %q lists %d objects, want %d", path, c.header[1:], len(data),
					c.want)
			}
		}
	}
	if b, err := s.meta.Batch(t.Context(), "a", batch); err != nil || b.Tenant != "a" {
		t.Errorf("the batch is %s's, %v", b.Tenant, err)
	}
	s.get("/v1/files", as("ops-admin", "a/b")...).refused(400, "", "invalid_value",
		"'a/b' is not the name of a tenant")
	s.get("/v1/files", append(admin, TenantHeader, "b")...).refused(400, "", "invalid_value",
		"occurs 2 times")
	s.get("/v1/files", append(as("b-user", "b"), TenantHeader, "a")...).refused(403, "",
		"insufficient_permissions")
}

// Without keys everybody is a user of the default tenant, and no admin.
func TestWithoutKeysNobodyActsForOthers(t *testing.T) {
	s := newService(t)
	s.get("/v1/files", TenantHeader, DefaultTenant).ok()
	s.get("/v1/files", TenantHeader, "a").refused(403, "", "insufficient_permissions",
		"Only a key with the role admin")
}

func TestTenantsAreListedForAdmins(t *testing.T) {
	keys := tenantKeys(t)
	s := newService(t, func(c *Config, d *Deps) {
		d.Keys = keys
		c.TenantQuotas = map[string]int64{"b": 1 << 20}
	})
	owner := as("a-user", "")
	s.batchAs(s.uploadAs(line("1"), owner), owner)
	s.batchAs(s.uploadAs("no JSON\n", owner), owner)
	s.uploadAs(line("1"), as("b-user", ""))
	size := float64(len(line("1")))
	want := []any{
		map[string]any{"id": "a", "object": "tenant", "batches": 2.0, "active_batches": 1.0,
			"files": 2.0, "bytes": size + float64(len("no JSON\n")), "quota_bytes": nil},
		map[string]any{"id": "b", "object": "tenant", "batches": 0.0, "active_batches": 0.0,
			"files": 1.0, "bytes": size, "quota_bytes": float64(1 << 20)},
	}
	admin := as("ops-admin", "")
	if diff := cmp.Diff(want, s.get("/v1/tenants", admin...).ok()["data"]); diff != "" {
		t.Errorf("tenants (-want +got):\n%s", diff)
	}
	for _, key := range []string{"a-user", "a-viewer"} {
		s.get("/v1/tenants", as(key, "")...).refused(403, "", "insufficient_permissions",
			"Only a key with the role admin")
	}
}
