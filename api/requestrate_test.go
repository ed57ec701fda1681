package api

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store/live"
)

// Two servers that share windows let through what one may, and count tenants apart.
func TestRequestsPerMinuteHoldOverReplicas(t *testing.T) {
	var windows live.Memory
	keys, err := ParseKeys("a=key-a,b=key-b")
	if err != nil {
		t.Fatal(err)
	}
	var replicas [2]*service
	for i := range replicas {
		replicas[i] = newService(t, func(c *Config, d *Deps) {
			c.RequestsPerMinute, d.Windows, d.Keys = 4, &windows, keys
		})
	}
	get := func(i int, key string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			replicas[i%2].url+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer
	}
	// check requires headers with the requests left, and a reset between from and to.
	check := func(answer *http.Response, left int, from, to time.Duration) {
		t.Helper()
		h := answer.Header
		reset, err := time.ParseDuration(h.Get("X-Ratelimit-Reset-Requests"))
		if h.Get("X-Ratelimit-Limit-Requests") != "4" || h.Get("X-Ratelimit-Remaining-Requests") !=
			strconv.Itoa(left) || err != nil || reset < from || reset > to {
			t.Errorf("got %v, want %d left and %v to %v", h, left, from, to)
		}
	}
	for i := range 4 {
		answer := get(i, "key-a")
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("request %d: %s", i, answer.Status)
		}
		full := time.Duration(i+1) * 15 * time.Second
		check(answer, 3-i, full-10*time.Second, full)
	}
	for i := range 2 {
		answer := get(i, "key-a")
		wait, err := strconv.Atoi(answer.Header.Get("Retry-After"))
		if answer.StatusCode != http.StatusTooManyRequests || err != nil || wait < 1 || wait > 15 {
			t.Errorf("one more at replica %d: %s, Retry-After %q", i, answer.Status,
				answer.Header.Get("Retry-After"))
		}
		check(answer, 0, 50*time.Second, time.Minute)
	}
	other := get(0, "key-b")
	if other.StatusCode != http.StatusOK {
		t.Errorf("another tenant: %s", other.Status)
	}
	check(other, 3, 10*time.Second, 15*time.Second)
	for _, wrong := range []int{-1, 1_000_001} {
		c := Config{RequestsPerMinute: wrong}
		if err := c.Validate(); !strings.Contains(err.Error(), "requests_per_minute is "+
			strconv.Itoa(wrong)) {
			t.Errorf("got %v", err)
		}
	}
}
