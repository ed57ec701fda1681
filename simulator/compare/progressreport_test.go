package compare

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

func TestReportProgressEndsWithStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		stop := ReportProgress(&out, time.Duration.String)
		time.Sleep(2*progressInterval + time.Second)
		stop()
		time.Sleep(progressInterval)
		stop()
		if got, want := out.String(), "10s\n20s\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
