package headroom

import (
	"testing"

	"github.com/tidefill/tidefill/flowcontrol"
)

func TestStreams(t *testing.T) {
	for streams, want := range map[Streams]int{
		StreamsOff: 0, StreamsSome: someStreams, StreamsAll: flowcontrol.NoLimit,
	} {
		c, _ := newPool(t, func(c *flowcontrol.Config) {
			own := DefaultConfig()
			own.Streams = streams
			*c = c.With(Name, own)
		}, "r")
		if got := c.Allowance(noon).Streams; got != want {
			t.Errorf("streams: %s: %d lines are to be streamed, want %d", streams, got, want)
		}
	}
}
