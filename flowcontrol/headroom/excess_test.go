package headroom

import "testing"

// Late requests that come one by one are not charged as long as no more come than usual.
func TestUsualLateRequestsAreNotCharged(t *testing.T) {
	var e excess
	charged := 0.0
	for i := range 1000 { // a tenth of one is expected each time, and one in ten comes
		late := 0.0
		if i%10 == 9 {
			late = 1
		}
		charged += e.add(late, 0.1)
	}
	if charged > 1 {
		t.Errorf("%.1f of 100 usual late requests are charged", charged)
	}
	// The credit of a calm time is bounded.
	for range 10_000 {
		e.add(0, 0.1)
	}
	if got := e.add(20, 0.1); got < 16 {
		t.Errorf("%.1f of 20 unusual late requests are charged after a calm time", got)
	}
}
