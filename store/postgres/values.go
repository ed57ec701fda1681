package postgres

// limitOrAll returns a LIMIT of one row more than asked for, which shows whether there are more.
// nil: all rows.
func limitOrAll(limit int) *int64 {
	if limit <= 0 {
		return nil
	}
	n := int64(limit) + 1
	return &n
}

// integers returns the numbers as an array of the server. It is not nil: it stands for an empty
// array, not for NULL.
func integers(list []int) []int64 {
	out := make([]int64, len(list))
	for i, n := range list {
		out[i] = int64(n)
	}
	return out
}
