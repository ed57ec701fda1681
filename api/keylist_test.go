package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/store"
)

const keysURL = "/v1/organization/admin_api_keys"

// newKeys serves three keys of a file and one of the environment.
func newKeys(t *testing.T) *service {
	t.Helper()
	ring, err := parseKeysFile([]byte("keys:\n" +
		"- {hash: " + HashKey("ops-admin") + ", tenant: ops, role: admin}\n" +
		"- {hash: " + HashKey("a-user") + ", tenant: a, name: eval, created: 2026-01-31}\n" +
		"- {hash: " + HashKey("a-viewer") + ", tenant: a, role: viewer, " +
		"created: 2026-01-30T12:00:00+02:00}\n"))
	if err == nil {
		ring, err = ringOf(t, "b=b-user").Join(ring)
	}
	if err != nil {
		t.Fatal(err)
	}
	return newService(t, func(_ *Config, d *Deps) { d.Keys = ring })
}

// idOf returns the id of a key.
func idOf(key string) string { return "key_" + strings.TrimPrefix(HashKey(key), hashPrefix)[:16] }

// lastUsed returns the listed last uses by the ids of the keys; nil: never.
func lastUsed(s *service) map[string]any {
	s.t.Helper()
	used := map[string]any{}
	for _, of := range s.get(keysURL, as("ops-admin", "")...).ok()["data"].([]any) {
		used[of.(map[string]any)["id"].(string)] = of.(map[string]any)["last_used_at"]
	}
	return used
}

func TestKeysAreListedAsOpenAIListsThem(t *testing.T) {
	s := newKeys(t)
	key := func(key, tenant, role, source string, name, created, used any) map[string]any {
		return map[string]any{"id": idOf(key), "object": "organization.admin_api_key",
			"name": name, "redacted_value": HashKey(key)[:len(hashPrefix)+8] + "…",
			"created_at": created, "expires_at": nil, "last_used_at": used,
			"owner": map[string]any{"type": "user", "object": "organization.user", "id": tenant,
				"name": tenant},
			"tidefill": map[string]any{"tenant": tenant, "role": role, "source": source}}
	}
	now := float64(s.clock.now().Unix())
	s.get("/v1/models", as("b-user", "")...).ok()
	s.get("/v1/models", as("nobody", "")...).refused(401, "", "invalid_api_key")
	s.clock.advance(time.Hour)
	s.do("POST", "/v1/files", nil, as("a-viewer", "")...).refused(403, "",
		"insufficient_permissions")
	all := []any{
		key("b-user", "b", "user", "environment", nil, nil, now),
		key("ops-admin", "ops", "admin", "keys_file", nil, nil, now+3600),
		key("a-viewer", "a", "viewer", "keys_file", nil, 1769767200.0, now+3600),
		key("a-user", "a", "user", "keys_file", "eval", 1769817600.0, nil),
	}
	if idOf("b-user") > idOf("ops-admin") {
		all[0], all[1] = all[1], all[0]
	}
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	for _, c := range []struct {
		query, tenant string
		more          bool
		want          []any
	}{
		{"", "", false, all},
		{"order=asc&limit=4", "", false, all},
		{"order=desc", "", false, reversed},
		{"limit=3", "", true, all[:3]},
		{"limit=3&after=" + idOf("a-viewer"), "", false, all[3:]},
		{"order=desc&limit=1&after=" + idOf("a-user"), "", true, reversed[1:2]},
		{"after=" + idOf("a-user"), "", false, []any{}},
		{"", "a", false, all[2:]},
		{"", "other", false, []any{}},
	} {
		got := s.get(keysURL+"?"+c.query, as("ops-admin", c.tenant)...).ok()
		want := map[string]any{"object": "list", "data": c.want, "has_more": c.more,
			"first_id": nil, "last_id": nil}
		if n := len(c.want); n > 0 {
			want["first_id"] = c.want[0].(map[string]any)["id"]
			want["last_id"] = c.want[n-1].(map[string]any)["id"]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q for %q (-want +got):\n%s", c.query, c.tenant, diff)
		}
	}
	for query, param := range map[string]string{"limit=0": "limit", "limit=101": "limit",
		"order=up": "order", "after=key_0": "after"} {
		s.get(keysURL+"?"+query, as("ops-admin", "")...).refused(400, param, "invalid_value")
	}
	for _, key := range []string{"a-user", "a-viewer", "b-user"} {
		s.get(keysURL, as(key, "")...).refused(403, "", "insufficient_permissions",
			"Only a key with the role admin")
	}
	s.get(keysURL).refused(401, "", "")
}

func TestWithoutKeysNoneAreListed(t *testing.T) {
	if data := newService(t).get(keysURL).ok()["data"].([]any); len(data) != 0 {
		t.Errorf("got %v", data)
	}
}

// What one process has noted when it ends is listed by the next, and the later use counts.
func TestLastUsesAreSavedAtTheEnd(t *testing.T) {
	first := newKeys(t)
	first.get("/v1/models", as("a-user", "")...).ok()
	at := float64(first.clock.now().Unix())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := first.server.Run(ctx); err != nil {
		t.Fatal(err)
	}
	second := newService(t, func(_ *Config, d *Deps) {
		d.Keys, d.Metadata = first.server.keys.Load(), first.meta
	})
	if got := lastUsed(second)[idOf("a-user")]; got != at {
		t.Errorf("the next process lists %v, want %v", got, at)
	}
	second.clock.advance(time.Minute)
	second.get("/v1/models", as("a-user", "")...).ok()
	if got := lastUsed(second)[idOf("a-user")]; got != at+60 {
		t.Errorf("after another use it lists %v, want %v", got, at+60)
	}
	if got := lastUsed(first)[idOf("a-user")]; got != at {
		t.Errorf("the first process lists %v, want %v", got, at)
	}
	first.get("/v1/models", as("a-user", "")...).ok()
	if err := second.server.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if got := lastUsed(first)[idOf("a-user")]; got != at+60 {
		t.Errorf("after a later use elsewhere the first process lists %v, want %v", got, at+60)
	}
}

// A changed role or name of a key, and its removal, leave its last use.
func TestLastUsesSurviveChangesOfTheKeysFile(t *testing.T) {
	s := newKeys(t)
	s.get("/v1/models", as("a-user", "")...).ok()
	before := lastUsed(s)[idOf("a-user")]
	admin := "keys:\n- {hash: " + HashKey("ops-admin") + ", role: admin}\n"
	for _, row := range []string{"", "- {hash: " + HashKey("a-user") + ", role: viewer}\n"} {
		ring, err := parseKeysFile([]byte(admin + row))
		if err != nil {
			t.Fatal(err)
		}
		s.server.SetKeys(ring)
		s.clock.advance(time.Hour)
		got, listed := lastUsed(s)[idOf("a-user")]
		if listed != (row != "") || listed && got != before {
			t.Errorf("with %q: listed %t, last used %v, want %v", row, listed, got, before)
		}
	}
}

// usesStore is a store of last uses that can be away.
type usesStore struct {
	Metadata // none

	mu    sync.Mutex
	away  bool
	saves [][]store.KeyUse
}

func (u *usesStore) NoteKeys(_ context.Context, uses []store.KeyUse, _ time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.saves = append(u.saves, uses); u.away {
		return store.ErrUnavailable
	}
	return nil
}

func (u *usesStore) UsedKeys(context.Context) ([]store.KeyUse, error) {
	return nil, store.ErrUnavailable
}

func (u *usesStore) setAway(away bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.away = away
}

// took returns the saves since the last call as "seconds since the start: uses".
func (u *usesStore) took(start time.Time) (saves []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, uses := range u.saves {
		var text []string
		for _, use := range uses {
			text = append(text, fmt.Sprintf("%.4s at %v", use.Hash, use.At.Sub(start)))
		}
		slices.Sort(text)
		saves = append(saves, strings.Join(text, ", "))
	}
	u.saves = nil
	return saves
}

func TestLastUsesAreSavedEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		uses := new(usesStore)
		s, err := New(DefaultConfig(), Deps{Keys: ringOf(t, "a=key-a,b=key-b"), Store: Store{
			Metadata: uses, Progress: struct{ ProgressBoard }{}, Blobs: struct{ Blobs }{},
			Journals: struct{ Journals }{}, Ledger: struct{ Ledger }{}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.keepKeyUses(ctx) })
		start := time.Now()
		use := func(key string) {
			r := httptest.NewRequest("GET", "/v1/models", nil)
			r.Header.Set("Authorization", "Bearer "+key)
			s.Handler().ServeHTTP(httptest.NewRecorder(), r)
		}
		a, b := HashKey("key-a")[len(hashPrefix):][:4], HashKey("key-b")[len(hashPrefix):][:4]
		saved := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, uses.took(start)); diff != "" {
				t.Errorf("after %v (-want +got):\n%s", time.Since(start), diff)
			}
		}
		for range 100 {
			use("key-a")
			use("wrong")
			time.Sleep(500 * time.Millisecond) // virtual
		}
		saved()
		time.Sleep(20 * time.Second)
		saved(a + " at 49.5s")
		time.Sleep(time.Hour)
		saved() // nothing new

		uses.setAway(true)
		use("key-b") // at 1h1m10s
		time.Sleep(2 * time.Minute)
		saved(b+" at 1h1m10s", b+" at 1h1m10s")
		use("key-a") // at 1h3m10s
		uses.setAway(false)
		time.Sleep(time.Minute)
		saved(strings.Join(slices.Sorted(slices.Values([]string{a + " at 1h3m10s",
			b + " at 1h1m10s"})), ", "))

		use("key-b")
		end()
		running.Wait()
		saved(b + " at 1h4m10s")
	})
}

// Without the store a key would look as if it was never used.
func TestKeysAreNotListedWithoutTheStore(t *testing.T) {
	keys := tenantKeys(t)
	s := newService(t, func(_ *Config, d *Deps) { d.Keys, d.Metadata = keys, new(usesStore) })
	s.get(keysURL, as("ops-admin", "")...).refused(http.StatusServiceUnavailable, "",
		"store_unavailable")
}

// A save of a use that was replaced meanwhile leaves the later one.
func TestUsesDuringASaveAreKept(t *testing.T) {
	var u keyUses
	hash, at := keyHash{1}, time.Unix(1_790_000_000, 0)
	u.note(hash, at)
	saving := u.all()
	u.note(hash, at.Add(time.Second))
	u.note(hash, at.Add(-time.Second)) // a clock that was set back
	u.saved(saving)
	if left := u.all(); len(left) != 1 || !left[hash].Equal(at.Add(time.Second)) {
		t.Errorf("left: %v", left)
	}
	u.saved(u.all())
	if left := u.all(); len(left) != 0 {
		t.Errorf("left after the save: %v", left)
	}
}
