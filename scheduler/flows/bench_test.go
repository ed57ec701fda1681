package flows_test

import (
	"strconv"
	"testing"

	"github.com/tidefill/tidefill/scheduler/flows"
)

// BenchmarkFullQueue adds requests to a queue in which 10,000 requests of as many tenants wait:
// those of ever new tenants, which are refused, and more important ones, for which others give up
// their places.
func BenchmarkFullQueue(b *testing.B) {
	const waiting = 10_000
	cfg := flows.DefaultConfig()
	cfg.MaxWaiting = waiting
	request := func(id uint64, class string) flows.Request {
		return flows.Request{ID: id, Flow: flows.Flow{Class: class, UseCase: "u",
			Tenant: strconv.FormatUint(id, 10)}}
	}
	full := func(b *testing.B) *flows.Queue {
		b.Helper()
		q, err := flows.New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		for id := range uint64(waiting) {
			q.Add(noon, request(id, flows.Flex))
		}
		b.ReportAllocs()
		return q
	}
	b.Run("refused", func(b *testing.B) {
		q := full(b)
		for id := uint64(waiting); b.Loop(); id++ {
			if shed := q.Add(noon, request(id, flows.Flex)); len(shed) != 1 || shed[0].ID != id {
				b.Fatalf("request %d: %v, want it refused", id, shed)
			}
		}
	})
	b.Run("displaced", func(b *testing.B) {
		q := full(b)
		important := request(waiting, flows.Critical)
		for b.Loop() {
			shed := q.Add(noon, important)
			if len(shed) != 1 || shed[0].ID >= waiting {
				b.Fatalf("%v gave up their places, want one of the last class", shed)
			}
			q.Remove(important.ID)
			q.Add(noon, request(shed[0].ID, flows.Flex))
		}
	})
}
