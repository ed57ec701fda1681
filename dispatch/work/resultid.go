package work

import "strconv"

// ResultID returns the id of a line's result. It is the same in every attempt, so that the runner's
// log and the result file agree.
func ResultID(batch string, line uint32) string {
	const prefix = "batch_"
	if len(batch) > len(prefix) && batch[:len(prefix)] == prefix {
		batch = batch[len(prefix):]
	}
	id := make([]byte, 0, 64)
	id = append(append(id, "batch_req_"...), batch...)
	// six digits at least, so that ids of one batch are of one length
	for shift := 20; shift > 0; shift -= 4 {
		if line>>shift == 0 {
			id = append(id, '0')
		}
	}
	return string(strconv.AppendUint(id, uint64(line), 16))
}
