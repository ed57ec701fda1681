package httpserver

// connectionShare is the part of the file descriptors that connections may take. A request may open
// a file beside its connection, and the rest is for runners, the store and the admin address.
const connectionShare = 4

// Within returns the configuration with max_connections lowered to what the limit of open files has
// room for, and whether it had to be. A limit of 0 is unknown and changes nothing.
func (c Config) Within(openFiles uint64) (within Config, lowered bool) {
	if openFiles == 0 {
		return c, false
	}
	most := int(min(openFiles/connectionShare, 1<<20))
	lowered = c.MaxConnections > most
	if lowered || c.MaxConnections == 0 {
		c.MaxConnections = most
	}
	return c, lowered
}

// refusals is how many refused connections may wait at once for their clients to read why: four
// times as many as may be served, so that a crowd gets an orderly answer, within a share of the
// open files of their own.
func refusals(connections int, openFiles uint64) int {
	most := 4 * connections
	if openFiles > 0 {
		most = min(most, int(min(openFiles/connectionShare, 1<<20)))
	}
	return max(64, most)
}
