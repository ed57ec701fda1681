package keda_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/tidefill/tidefill/autoscale/keda"
)

// The age of a decision below a minute is not cut to zero.
func TestAnOldDecisionHasItsAge(t *testing.T) {
	w := start(t, func(c *keda.Config) { c.Tuning.StaleAfter = 30 * time.Second })
	w.d.setAt(time.Now().Add(-45*time.Second), wanted("night", 0, 0, 0))
	_, err := w.client.IsActive(t.Context(), object("night-gpus", "night"))
	if err == nil || !strings.Contains(err.Error(), "the last decision is 45s old") {
		t.Errorf("got %v", err)
	}
}

// KEDA waits without limit, and scales nothing meanwhile.
func TestACallThatHangsFailsInTime(t *testing.T) {
	w := start(t, func(c *keda.Config) { c.Tuning.CallLimit = time.Second })
	ref := object("night-gpus", "night")
	w.d.set(wanted("night", 2, 0, 0))
	w.d.mu.Lock() // whoever asks for the snapshot hangs
	begun := time.Now()
	_, err := w.client.IsActive(t.Context(), ref)
	took := time.Since(begun)
	w.d.mu.Unlock()
	if status.Code(err) != codes.DeadlineExceeded || took > 10*time.Second {
		t.Errorf("got %v after %v", err, took)
	}
	if value, active, err := w.observe(ref); err != nil || value != 2 || !active {
		t.Errorf("got %v, %v, %v after it", value, active, err)
	}
}

// A fault of the program costs one call.
func TestAPanicFailsItsCallOnly(t *testing.T) {
	w := start(t)
	night, chat := object("night-gpus", "night"), object("chat-gpus", "chat")
	w.d.set(wanted("night", 2, 0, 0), wanted("chat", 1, 0, 0))
	w.d.beforeDeclare(func(pool string) {
		if pool == "night" {
			panic("a fault")
		}
	})
	if _, err := w.client.IsActive(t.Context(), night); status.Code(err) != codes.Internal ||
		strings.Contains(err.Error(), "a fault.") {
		t.Errorf("got %v", err)
	}
	stream, err := w.client.StreamIsActive(t.Context(), night)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Internal {
		t.Errorf("the stream ended with %v", err)
	}
	if value, _, err := w.observe(chat); err != nil || value != 1 {
		t.Errorf("another object gets %v, %v", value, err)
	}
	w.d.beforeDeclare(func(string) {})
	if value, _, err := w.observe(night); err != nil || value != 2 {
		t.Errorf("got %v, %v after it", value, err)
	}
}

// Who sends errors on purpose does not fill the log.
func TestTheLogIsBounded(t *testing.T) {
	w := start(t)
	w.d.set(wanted("night", 2, 0, 0))
	for i := range 1000 {
		for range 2 {
			if _, err := w.client.IsActive(t.Context(), object(poolName(i), "nihgt")); err == nil {
				t.Fatal("an unknown pool is answered")
			}
		}
	}
	if n := strings.Count(w.log.String(), "level=WARN"); n == 0 || n > 200 {
		t.Errorf("%d lines for 2000 errors", n)
	}
}

func TestMetricsCountTheCallsOfKEDA(t *testing.T) {
	w := start(t)
	w.d.set(wanted("night", 2, 0, 0))
	active, _ := w.activity(object("night-gpus", "night"))
	<-active
	w.observe(object("night-gpus", "night"))
	w.observe(object("broken", "nihgt"))
	w.awaitHealth(grpc_health_v1.HealthCheckResponse_SERVING) // no call of KEDA
	w.await("the calls are counted", func() error {
		families, err := w.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := f.GetName()
				for _, l := range m.GetLabel() {
					name += " " + l.GetValue()
				}
				got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() +
					float64(m.GetHistogram().GetSampleCount())
			}
		}
		if len(got) > 9 {
			t.Errorf("more is counted: %v", got)
		}
		for name, want := range map[string]float64{
			"tidefill_scaler_requests_total OK GetMetrics":       1,
			"tidefill_scaler_requests_total NotFound GetMetrics": 1,
			"tidefill_scaler_requests_total OK GetMetricSpec":    2,
			"tidefill_scaler_request_seconds GetMetrics":         2,
			"tidefill_scaler_streams":                            1,
			"tidefill_scaler_scaledobjects":                      1,
		} {
			if got[name] != want {
				return errors.New(name + " differs")
			}
		}
		return nil
	})
}

func TestValidateReportsEveryFault(t *testing.T) {
	c := keda.DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	c.Listen, c.TLS.ClientCAFile = "9090", "ca.pem"
	c.Tuning.StaleAfter = 29 * time.Second
	err := c.Validate()
	for _, want := range []string{`listen: "9090" is no address; write host:port`,
		`tls: client_ca_file is "ca.pem" without a cert_file`,
		"tuning.stale_after: is 29s, must be at least 30s: processes that do not decide"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}
