package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// runBar shows how far long computing has come: drawn over itself on a terminal, a line now and
// then elsewhere.
type runBar struct {
	meter *meter
	every time.Duration
	drawn bool
}

func newRunBar(out io.Writer) *runBar {
	b := &runBar{meter: newMeter(out), every: 30 * time.Second}
	if b.meter.width != nil {
		b.every = 200 * time.Millisecond
	}
	return b
}

func (b *runBar) show(share float64, name string, since time.Duration) {
	share = min(max(share, 0), 1)
	left := ""
	if share > 0.02 && share < 1 {
		left = ", about " + clock(time.Duration(float64(since)*(1/share-1))) + " to go"
	}
	if b.meter.width == nil {
		fmt.Fprintf(b.meter.out, "%.0f%%%s (%s)\n", 100*share, left, name)
		return
	}
	const room = 24
	full := int(room * share)
	text := []rune(fmt.Sprintf("[%s%s] %3.0f%%%s  %s", strings.Repeat("#", full),
		strings.Repeat("-", room-full), 100*share, left, name))
	fmt.Fprintf(b.meter.out, "\r\x1b[K%s", string(text[:min(len(text), b.meter.width()-1)]))
	b.drawn = true
}

func (b *runBar) wipe() {
	if b.drawn {
		fmt.Fprint(b.meter.out, "\r\x1b[K")
	}
}
