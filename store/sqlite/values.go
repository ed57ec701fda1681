package sqlite

import "encoding/json"

// jsonList encodes a list for a statement with json_each.
func jsonList[T any](ids []T) (string, error) {
	b, err := json.Marshal(ids)
	return string(b), err
}

// limitOrAll returns a LIMIT of one row more than asked for, which shows whether there are more; 0:
// all rows.
func limitOrAll(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit + 1
}
