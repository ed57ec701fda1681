package emulator

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

func read(t testing.TB, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// try posts without expecting an answer.
func try(t *testing.T, ctx context.Context, url, body string) (int, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func TestCapabilitiesCanBeAway(t *testing.T) {
	s, url := start(t, instant)
	s.SetFaults(Faults{NoCapabilities: true})
	resp, err := http.Get(url + "/v1/capabilities")
	if err == nil {
		resp.Body.Close()
		t.Errorf("capabilities are answered with %s while they are away", resp.Status)
	}
	if resp, body := post(t, url+"/v1/chat/completions", hello); resp.StatusCode != 200 {
		t.Errorf("a request is answered with %d: %s", resp.StatusCode, body)
	}
	s.SetFaults(Faults{})
	if resp, _ := get(t, url+"/v1/capabilities"); resp.StatusCode != 200 {
		t.Errorf("capabilities are answered with %d when they are back", resp.StatusCode)
	}
}

func TestFaults(t *testing.T) {
	s, url := start(t, instant)
	url += "/v1/chat/completions"

	s.SetFaults(Faults{TooManyRequests: 1, RetryAfter: Duration(1500 * time.Millisecond)})
	if resp, _ := post(t, url, hello); resp.StatusCode != 429 ||
		resp.Header.Get("Retry-After") != "2" {
		t.Errorf("429: %d, retry after %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	s.SetFaults(Faults{Unavailable: 1})
	if resp, _ := post(t, url, hello); resp.StatusCode != 503 ||
		resp.Header.Get("Retry-After") != "" {
		t.Errorf("503: %d, retry after %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	s.SetFaults(Faults{TooManyRequests: 1, OnlyLow: true})
	if resp, _ := post(t, url, hello); resp.StatusCode != 200 {
		t.Errorf("a request without priority: %d while only low ones get faults", resp.StatusCode)
	}
	low, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(hello))
	if err != nil {
		t.Fatal(err)
	}
	low.Header.Set("X-Priority", "low")
	resp, err := http.DefaultClient.Do(low)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != 429 {
		t.Errorf("a request of low priority: %d, want 429", resp.StatusCode)
	}
	s.SetFaults(Faults{ServerError: 1})
	if resp, body := post(t, url, hello); resp.StatusCode != 500 || !strings.Contains(body,
		`"error":{`) {
		t.Errorf("500: %d %s", resp.StatusCode, body)
	}
	s.SetFaults(Faults{Garbage: 1})
	if resp, body := post(t, url, hello); resp.StatusCode != 200 || json.Valid([]byte(body)) {
		t.Errorf("garbage: %d %s", resp.StatusCode, body)
	}
	s.SetFaults(Faults{Reset: 1})
	if _, _, err := try(t, t.Context(), url, hello); !errors.Is(err, syscall.ECONNRESET) &&
		!errors.Is(err, io.EOF) {
		t.Errorf("reset: %v", err)
	}
	s.SetFaults(Faults{Hang: 1, HangFor: Duration(time.Millisecond)})
	if _, _, err := try(t, t.Context(), url, hello); err == nil {
		t.Error("hang: answered")
	}
	s.SetFaults(Faults{Hang: 1})
	brief, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := try(t, brief, url, hello); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hang: %v", err)
	}
	s.SetFaults(Faults{Cut: 1})
	for _, body := range []string{hello, hello[:len(hello)-1] + `,"stream":true,"min_tokens":20}`} {
		status, part, err := try(t, t.Context(), url, body)
		if status != 200 || err == nil || part == "" || strings.Contains(part, "[DONE]") {
			t.Errorf("cut: %d %v %q", status, err, part)
		}
	}
	s.SetFaults(Faults{Latency: Duration(30 * time.Millisecond)})
	before := time.Now()
	if resp, _ := post(t, url, hello); resp.StatusCode != 200 ||
		time.Since(before) < 30*time.Millisecond {
		t.Errorf("latency: %d after %v", resp.StatusCode, time.Since(before))
	}
}

// Wrong answers come complete, and leave the connection open.
func TestWrongAnswers(t *testing.T) {
	s, url := start(t, instant)
	url += "/v1/chat/completions"
	for _, test := range []struct {
		faults      Faults
		status      int
		contentType string
		body        string // a part of it; empty: it is empty
	}{
		{Faults{Unauthorized: 1}, 401, "application/json", `"code":"invalid_api_key"`},
		{Faults{Forbidden: 1}, 403, "application/json", `"code":"permission_denied"`},
		{Faults{ServerError: 1}, 500, "application/json", `"code":"internal_error"`},
		{Faults{LoginPage: 1}, 200, "text/html; charset=utf-8", "<form"},
		{Faults{Empty: 1}, 200, "application/json", ""},
		{Faults{WrongJSON: 1}, 200, "application/json", `{"status":"ok"}`},
	} {
		s.SetFaults(test.faults)
		resp, body := post(t, url, hello)
		if resp.StatusCode != test.status || resp.Header.Get("Content-Type") != test.contentType ||
			!strings.Contains(body, test.body) || test.body == "" && body != "" || resp.Close {
			t.Errorf("%+v: %d, %s, %q", test.faults, resp.StatusCode,
				resp.Header.Get("Content-Type"), body)
		}
		if isError := strings.HasPrefix(body, `{"error":{"message":"`); isError != (test.status >=
			400) {
			t.Errorf("%+v: %s", test.faults, body)
		}
	}
	// A handler may close its entry a moment after the client has its answer.
	got := s.Requests()
	for got.InFlight > 0 {
		got = s.Requests()
	}
	if got.Completed != 0 || got.Failed != 6 {
		t.Errorf("counted %+v", got)
	}
}

func TestFaultsForAPartOfEachPeriod(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	i := newFaultInjector(Faults{WrongJSON: 1, Latency: Duration(time.Second),
		Period: Duration(2 * time.Minute), Bad: Duration(time.Minute)}, 1, start)
	for at, bad := range map[time.Duration]bool{0: true, time.Minute - 1: true, time.Minute: false,
		2*time.Minute - 1: false, 2 * time.Minute: true, 181 * time.Second: false} {
		fault, wait := i.draw(start.Add(at))
		if (fault == wrongJSON) != bad || (wait > 0) != bad {
			t.Errorf("after %v: fault %d, wait %v; want a fault: %v", at, fault, wait, bad)
		}
	}
	for faults, valid := range map[string]bool{`{"period":"2m","bad":"1m"}`: true,
		`{"bad":"1m"}`: false, `{"period":"1m","bad":"2m"}`: false,
		`{"period":"1m","bad":"-1s"}`: false} {
		var f Faults
		if err := json.Unmarshal([]byte(faults), &f); err != nil {
			t.Fatal(err)
		}
		if err := f.Validate(); (err == nil) != valid {
			t.Errorf("%s: %v", faults, err)
		}
	}
}

func TestFaultsOverHTTP(t *testing.T) {
	s, url := start(t, instant)
	for _, body := range []string{`{"reset":2}`, `{"typo":1}`, `{"latency":"fast"}`, `[]`,
		`{"reset":0.6,"hang":0.6}`} {
		if resp, answer := post(t, url+"/admin/faults", body); resp.StatusCode != 400 {
			t.Errorf("%s accepted: %s", body, answer)
		}
	}
	post(t, url+"/admin/faults", `{"down":"1h"}`)
	if _, _, err := try(t, t.Context(), url+"/v1/chat/completions", hello); err == nil {
		t.Error("down, but answered")
	}
	if _, err := http.Get(url + "/metrics"); err == nil {
		t.Error("down, but metrics are served")
	}
	if _, body := get(t, url+"/admin/faults"); body != `{"down":"1h0m0s"}` {
		t.Errorf("in force: %s", body)
	}
	post(t, url+"/admin/faults", `{}`)
	if resp, body := post(t, url+"/v1/chat/completions", hello); resp.StatusCode != 200 ||
		s.injector.current().Down != 0 {
		t.Errorf("healed: %s", body)
	}
}

func TestFaultsFollowSeedAndProbability(t *testing.T) {
	faults := Faults{TooManyRequests: 0.1, ServerError: 0.2, Cut: 0.3}
	draw := func(seed uint64) (fates [cut + 1]int, log string) {
		i := newFaultInjector(faults, seed, time.Time{})
		for range 10_000 {
			f, _ := i.draw(time.Time{})
			fates[f]++
			log += string(rune('0' + f))
		}
		return fates, log
	}
	fates, log := draw(1)
	for f, want := range map[injected]int{noFault: 4000, tooManyRequests: 1000, unavailable: 0,
		serverError: 2000, cut: 3000} {
		if got := fates[f]; got < want-200 || got > want+200 {
			t.Errorf("fault %d: %d times of 10,000, want about %d", f, got, want)
		}
	}
	if _, again := draw(1); again != log {
		t.Error("same seed, other fates")
	}
	if _, other := draw(2); other == log {
		t.Error("other seed, same fates")
	}
}

func TestLedger(t *testing.T) {
	s, url := start(t, instant, func(c *Config) { c.Record = true })
	chatURL := url + "/v1/chat/completions"
	post(t, chatURL, hello)
	post(t, chatURL, hello)
	post(t, chatURL, `{"model":"m"}`)
	s.SetFaults(Faults{Unavailable: 1})
	post(t, chatURL, hello)
	s.SetFaults(Faults{Cut: 1})
	try(t, t.Context(), chatURL, hello+" ")
	s.SetFaults(Faults{})

	// A handler may close its entry a moment after the client has its answer.
	var got Ledger
	for got.Received == 0 || got.InFlight > 0 {
		_, body := get(t, url+"/admin/requests?bodies=true")
		got = decode[Ledger](t, body)
	}
	bodies := got.Bodies
	got.Bodies = nil
	want := Ledger{Received: 5, Completed: 2, Shed: 1, Failed: 2, Distinct: 3, Repeated: 1,
		CompletedTwice: 1, MaxReceived: 3, DistinctComplete: 1}
	if len(bodies) != 3 || got.Received != want.Received || got.Completed != want.Completed ||
		got.Shed != want.Shed || got.Failed != want.Failed ||
		got.Distinct != want.Distinct || got.Repeated != want.Repeated ||
		got.CompletedTwice != want.CompletedTwice ||
		got.MaxReceived != want.MaxReceived || got.DistinctComplete != want.DistinctComplete {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	r, _ := http.NewRequestWithContext(t.Context(), "DELETE", url+"/admin/requests", nil)
	if resp, err := http.DefaultClient.Do(r); err != nil || resp.StatusCode != 204 {
		t.Errorf("delete: %v %v", resp, err)
	}
	if got := s.Requests(); got.Received != 0 || len(got.Bodies) != 0 {
		t.Errorf("not forgotten: %+v", got)
	}
}
