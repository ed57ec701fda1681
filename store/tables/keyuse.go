package tables

import (
	"time"

	"github.com/tidefill/tidefill/store"
)

// SelectKeyUses begins the query whose rows ScanKeyUse reads.
const SelectKeyUses = "SELECT hash, used FROM key_uses ORDER BY "

// KeepLatestUse is the part of an upsert that replaces the row in the table k by a later one.
const KeepLatestUse = ` ON CONFLICT (hash) DO UPDATE SET used = excluded.used
	WHERE k.used < excluded.used`

// ScanKeyUse reads hash and time.
func ScanKeyUse(row Row) (u store.KeyUse, err error) {
	var used int64
	err = row.Scan(&u.Hash, &used)
	u.At = time.UnixMicro(used).UTC()
	return u, err
}

// ExportKeyUse reads the columns of [ScanKeyUse].
func ExportKeyUse(from Row) (store.Row, error) {
	u, err := ScanKeyUse(from)
	return store.Row{Key: store.RowKey{Name: u.Hash}, Value: u}, err
}
