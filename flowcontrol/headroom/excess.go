package headroom

// excess is the number of late requests beyond those that are late without batch work. What was
// expected and did not happen is a credit, so that single late requests are not charged only
// because they come one by one.
type excess float64

// maxCredit is the greatest credit, in late requests.
const maxCredit = 3

// add returns the number of late requests beyond the usual one.
func (e *excess) add(late, usual float64) float64 {
	*e = max(*e+excess(late-usual), -maxCredit)
	if *e <= 0 {
		return 0
	}
	beyond := float64(*e)
	*e = 0
	return beyond
}
