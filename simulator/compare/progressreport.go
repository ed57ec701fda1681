package compare

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progressInterval is the time between two reports.
const progressInterval = 10 * time.Second

// ReportProgress writes a line of text to out every 10 seconds until the caller calls stop. It
// calls text with the time since the start, from a goroutine of its own. After stop nothing is
// written; stop may be called twice.
func ReportProgress(out io.Writer, text func(elapsed time.Duration) string) (stop func()) {
	began := time.Now()
	ended := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				fmt.Fprintln(out, text(time.Since(began)))
			}
		}
	})
	return sync.OnceFunc(func() {
		close(ended)
		wait.Wait()
	})
}
