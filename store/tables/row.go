package tables

import (
	"time"

	"github.com/tidefill/tidefill/store"
)

// Row is a row of a query's result.
type Row interface {
	Scan(dest ...any) error
}

// Collect returns a function that appends what scan reads of each row.
func Collect[T any](to *[]T, scan func(Row) (T, error)) func(Row) error {
	return func(row Row) error {
		item, err := scan(row)
		*to = append(*to, item)
		return err
	}
}

// Index returns a function that adds what scan reads of each row.
func Index[K comparable, T any](to map[K]T, scan func(Row) (K, T, error)) func(Row) error {
	return func(row Row) error {
		key, item, err := scan(row)
		to[key] = item
		return err
	}
}

// ScanScalar reads the only column of a row.
func ScanScalar[T any](row Row) (value T, err error) {
	err = row.Scan(&value)
	return value, err
}

// ScanID reads a column of ids.
func ScanID(row Row) (id string, err error) {
	err = row.Scan(&id)
	return id, err
}

// ScanPair reads the two columns of a row.
func ScanPair[K, T any](row Row) (key K, value T, err error) {
	err = row.Scan(&key, &value)
	return key, value, err
}

// ScanDocument decodes the only column of a row.
func ScanDocument[T any](row Row) (item T, err error) {
	doc, err := ScanScalar[[]byte](row)
	if err != nil {
		return item, err
	}
	return Decode[T](doc)
}

// ScanOwner reads node and incarnation.
func ScanOwner(row Row) (o store.Owner, err error) {
	err = row.Scan(&o.Node, &o.Incarnation)
	return o, err
}

// ScanKnownOwner reads node, incarnation and the microseconds that are left of the lease.
func ScanKnownOwner(row Row) (o store.KnownOwner, err error) {
	var left int64
	err = row.Scan(&o.Node, &o.Incarnation, &left)
	o.LeaseLeft = time.Duration(left) * time.Microsecond
	return o, err
}

// ScanBatchName reads id and tenant.
func ScanBatchName(row Row) (b store.Batch, err error) {
	err = row.Scan(&b.ID, &b.Tenant)
	return b, err
}
