package tables

import (
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
)

// PoolHourColumns are the columns of [ScanPoolHour].
const PoolHourColumns = `pool, hour, firsts, late_firsts, estimated_firsts, added_firsts, tokens,
	late_tokens, estimated_tokens, added_tokens, allowed, lines, line_tokens`

// AddPoolHourCounts is the part of an upsert that adds the counts of a new row to those of the row
// in the table h.
const AddPoolHourCounts = `firsts = h.firsts + excluded.firsts,
	late_firsts = h.late_firsts + excluded.late_firsts,
	estimated_firsts = h.estimated_firsts + excluded.estimated_firsts,
	added_firsts = h.added_firsts + excluded.added_firsts,
	tokens = h.tokens + excluded.tokens,
	late_tokens = h.late_tokens + excluded.late_tokens,
	estimated_tokens = h.estimated_tokens + excluded.estimated_tokens,
	added_tokens = h.added_tokens + excluded.added_tokens,
	allowed = excluded.allowed,
	lines = h.lines + excluded.lines,
	line_tokens = h.line_tokens + excluded.line_tokens,
	saver = excluded.saver, save = excluded.save
	WHERE h.saver <> excluded.saver OR h.save < excluded.save`

// PoolHourCounts returns the values of the columns after pool and hour.
func PoolHourCounts(h store.PoolHour) []any {
	f, t := h.FirstTokens, h.Tokens
	return []any{f.Requests, f.Late, f.Estimated, f.Added, t.Requests, t.Late, t.Estimated,
		t.Added, h.Allowed, h.Lines, h.LineTokens}
}

// ScanPoolHour reads PoolHourColumns.
func ScanPoolHour(row Row) (h store.PoolHour, err error) {
	f, t := &h.FirstTokens, &h.Tokens
	var hour int64
	err = row.Scan(&h.Pool, &hour, &f.Requests, &f.Late, &f.Estimated, &f.Added, &t.Requests,
		&t.Late, &t.Estimated, &t.Added, &h.Allowed, &h.Lines, &h.LineTokens)
	h.Hour = time.UnixMicro(hour).UTC()
	return h, err
}

// ExportPoolHour reads PoolHourColumns.
func ExportPoolHour(from Row) (store.Row, error) {
	h, err := ScanPoolHour(from)
	return store.Row{Key: store.RowKey{Name: h.Pool, Number: Micros(h.Hour)}, Value: h}, err
}

// Saver names an owner in a row of pool_hours.
func Saver(o store.Owner) string { return fmt.Sprintf("%s/%d", o.Node, o.Incarnation) }
