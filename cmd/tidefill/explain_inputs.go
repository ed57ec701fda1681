package main

import (
	"fmt"
	"strings"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

// firstTokens says how long first tokens took in the last minute, and how long they may; empty:
// none were counted.
func firstTokens(d *client.Decision) string {
	f := d.FirstTokens
	if f == nil || f.P95 == nil {
		return ""
	}
	text := fmt.Sprintf("95 %% of first tokens within %.0f ms", *f.P95)
	if d.FirstObjective != nil {
		text += fmt.Sprintf(", objective %.0f ms", *d.FirstObjective)
	}
	text += fmt.Sprintf("; of %s in the last minute", humanize.Count(int(f.Requests), "request"))
	if f.Source != "gateway" {
		text += ", batch lines included"
	}
	return text
}

// engineLoad says what the engines did in the last second, all requests together; empty: nothing
// shows it.
func engineLoad(d *client.Decision) string {
	var prompt, cached, output, preempted total
	for i := range d.Runners {
		if in := d.Runners[i].Inputs; in != nil && in.Metrics != nil {
			prompt.add(in.Metrics.Prompt)
			cached.add(in.Metrics.Cached)
			output.add(in.Metrics.Output)
			preempted.add(in.Metrics.Preempted)
		}
	}
	var parts []string
	if prompt.known {
		text := humanize.Thousands(int64(prompt.sum)) + " prompt tokens/s"
		if cached.known && prompt.sum > 0 {
			text += fmt.Sprintf(", %.0f %% of them cached", 100*min(1, cached.sum/prompt.sum))
		}
		parts = append(parts, text)
	}
	if output.known {
		parts = append(parts, humanize.Thousands(int64(output.sum))+" output tokens/s")
	}
	if preempted.sum > 0 {
		parts = append(parts, humanize.Count(int(preempted.sum), "preemption")+" so far")
	}
	return strings.Join(parts, "; ")
}

// total adds up what is known.
type total struct {
	known bool
	sum   float64
}

func (t *total) add(n *float64) {
	if n != nil {
		t.known, t.sum = true, t.sum+*n
	}
}

// refusals says how many lines runners have refused or lost; empty: none.
func refusals(d *client.Decision) string {
	shed, broken, answered := 0.0, 0.0, 0.0
	for i := range d.Runners {
		if in := d.Runners[i].Inputs; in != nil {
			shed, broken = shed+in.Lines.Shed, broken+in.Lines.Broken
			answered += in.Lines.Answered
		}
	}
	if shed+broken == 0 {
		return ""
	}
	return fmt.Sprintf("%s shed, %s without an answer, %s answered",
		humanize.Thousands(int64(shed)), humanize.Thousands(int64(broken)),
		humanize.Thousands(int64(answered)))
}

// firstTokenTime returns the time within which 95 % of first tokens came.
func firstTokenTime(f *client.FirstTokens) string {
	if f == nil {
		return "-"
	}
	return orUnknown(f.P95, "%.0f ms")
}
