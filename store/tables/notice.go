package tables

import (
	"time"

	"github.com/tidefill/tidefill/store"
)

// ScanNotice reads id, batch, event, creation, attempts and due time, after the columns of dest.
func ScanNotice(row Row, dest ...any) (n store.Notice, err error) {
	var created int64
	var due *int64
	err = row.Scan(append(dest, &n.ID, &n.Batch, &n.Event, &created, &n.Attempts, &due)...)
	n.CreatedAt = time.UnixMicro(created).UTC()
	if due != nil {
		n.Due = time.UnixMicro(*due).UTC()
	}
	return n, err
}
