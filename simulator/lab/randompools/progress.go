package randompools

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/simulator/compare"
)

// progress reports the number of pools that are done. Workers may use it concurrently; a nil
// progress reports nothing.
type progress struct {
	total      int
	endReports func()

	mu   sync.Mutex
	done int
	name string // what began last
}

// newProgress begins to report; a nil out reports nothing. The caller calls stop.
func newProgress(out io.Writer, total int) *progress {
	if out == nil {
		return nil
	}
	p := &progress{total: total}
	p.endReports = compare.ReportProgress(out, p.text)
	return p
}

// at notes what runs.
func (p *progress) at(number int, name string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name = fmt.Sprintf("pool %d, %s", number, name)
}

// finished counts a pool.
func (p *progress) finished() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
}

const barWidth = 20

func (p *progress) text(elapsed time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	bar := make([]byte, barWidth)
	for i := range bar {
		bar[i] = '.'
		if i*p.total < p.done*barWidth {
			bar[i] = '#'
		}
	}
	left := ""
	if p.done > 0 && p.done < p.total {
		left = ", about " + humanize.Duration(elapsed*time.Duration(p.total-p.done)/
			time.Duration(p.done)) + " to go"
	}
	return fmt.Sprintf("[%s] %d/%d pools%s (%s)", bar, p.done, p.total, left, p.name)
}

// stop ends the reports.
func (p *progress) stop() {
	if p != nil {
		p.endReports()
	}
}
