package main

import (
	"testing"

	"github.com/tidefill/tidefill/client"
)

func TestExplainShowsWhatAFallbackCosts(t *testing.T) {
	spent, perDay := 31.0712, 40.0
	f := client.Fallback{Instead: "gpus", Requests: 1, Lines: 1840, InputTokens: 1000000,
		OutputTokens: 204113}
	const done = "of gpus: 1 request, 1,840 lines, 1,204,113 tokens since the start"
	if got := fallbackText(&f); got != done {
		t.Errorf("got %q", got)
	}
	f.Spent, f.PerDay = &spent, &perDay
	if got := fallbackText(&f); got != done+"; 31.07 of 40.00 spent today" {
		t.Errorf("got %q", got)
	}
}
