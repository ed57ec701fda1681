package answercheck

// Places limit the answers that are checked at the same time, which take processors and memory. A
// check has one place at a time, so that no batch takes those of others.
type Places chan struct{}

// NewPlaces returns some places.
func NewPlaces(n int) Places { return make(Places, n) }

// Take waits for a place in which c checks an answer. The caller calls release once, after it.
func (p Places) Take(c *Check) (release func()) {
	c.placed.Lock()
	p <- struct{}{}
	return func() {
		<-p
		c.placed.Unlock()
	}
}
