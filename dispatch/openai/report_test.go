package openai

import (
	"net/http"
	"testing"
	"time"
)

func FuzzReport(f *testing.F) {
	for _, seed := range []string{"150", "1.5", "-1", "NaN", "Inf", "1e400", "", "evicted-x",
		"rejected-saturated"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		r := readReport(http.Header{queueWaitHeader: {value}, gpuTimeHeader: {value},
			droppedHeader: {value}})
		if r.QueueWait < -1 || r.QueueWait > 24*time.Hour || r.GPUTime != r.QueueWait {
			t.Errorf("%q: got a time of %v", value, r.QueueWait)
		}
		if len(r.Dropped) > len(droppedCancelled) {
			t.Errorf("%q became the reason %q", value, r.Dropped)
		}
	})
}
