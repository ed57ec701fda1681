package httpserver

// connectionShare is the divisor for the share of file descriptors that connections may use. A
// request may open a file in addition to its connection; the rest is for runners, the store and the
// admin address.
const connectionShare = 4

// Within returns the configuration with max_connections lowered to what the limit of open files
// allows, and whether it was lowered. A limit of 0 is unknown and changes nothing.
func (c Config) Within(openFiles uint64) (within Config, lowered bool) {
	if openFiles == 0 {
		return c, false
	}
	limit := int(min(openFiles/connectionShare, 1<<20))
	lowered = c.MaxConnections > limit
	if lowered || c.MaxConnections == 0 {
		c.MaxConnections = limit
	}
	return c, lowered
}

// maxRefusals returns the number of refused connections that may wait at once for their clients to
// read the answer. It is four times the served connections, within an equal share of the open
// files.
func maxRefusals(connections int, openFiles uint64) int {
	limit := 4 * connections
	if openFiles > 0 {
		limit = min(limit, int(min(openFiles/connectionShare, 1<<20)))
	}
	return max(64, limit)
}
