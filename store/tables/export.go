package tables

import (
	"time"

	"github.com/tidefill/tidefill/store"
)

// The functions below read the rows of [store.Portable]. Their comments list the columns.

// ExportDocument reads number and document.
func ExportDocument[T any](from Row) (row store.Row, err error) {
	var doc []byte
	if err := from.Scan(&row.Key.Number, &doc); err != nil {
		return row, err
	}
	row.Value, err = Decode[T](doc)
	return row, err
}

// ExportFile reads number, document and summary.
func ExportFile(from Row) (row store.Row, err error) {
	var doc, summary []byte
	if err := from.Scan(&row.Key.Number, &doc, &summary); err != nil {
		return row, err
	}
	row.Value, err = DecodeFile(doc, summary)
	return row, err
}

// ExportBatch reads number, document, end and parameters.
func ExportBatch(from Row) (row store.Row, err error) {
	var doc, parameters []byte
	var ended int64
	if err := from.Scan(&row.Key.Number, &doc, &ended, &parameters); err != nil {
		return row, err
	}
	var b store.StoredBatch
	if b.Batch, err = Decode[store.Batch](doc); err != nil {
		return row, err
	}
	if parameters != nil {
		b.Parameters, err = Decode[*store.Parameters](parameters)
	}
	if ended != 0 {
		b.Ended = time.UnixMicro(ended).UTC()
	}
	row.Value = b
	return row, err
}

// ExportChunk reads the columns of [ScanChunk].
func ExportChunk(from Row) (store.Row, error) {
	c, err := ScanChunk(from)
	return store.Row{Key: store.RowKey{Name: c.Batch, Number: int64(c.Index)}, Value: c}, err
}

// ExportKey reads tenant, key, value and expiry.
func ExportKey(from Row) (row store.Row, err error) {
	var k store.StoredKey
	var expires int64
	err = from.Scan(&row.Key.Name, &row.Key.Sub, &k.Value, &expires)
	k.ExpiresAt = time.UnixMicro(expires).UTC()
	row.Value = k
	return row, err
}

// ExportLearned reads pool, kind, data and time.
func ExportLearned(from Row) (row store.Row, err error) {
	var l store.StoredLearned
	var saved int64
	err = from.Scan(&row.Key.Name, &row.Key.Sub, &l.Data, &saved)
	l.Data, l.SavedAt = append([]byte{}, l.Data...), time.UnixMicro(saved).UTC()
	row.Value = l
	return row, err
}

// ExportEpoch reads name and epoch.
func ExportEpoch(from Row) (row store.Row, err error) {
	var epoch int64
	err = from.Scan(&row.Key.Name, &epoch)
	row.Value = epoch
	return row, err
}

// ExportNotice reads endpoint and the columns of [ScanNotice].
func ExportNotice(from Row) (row store.Row, err error) {
	n, err := ScanNotice(from, &row.Key.Name)
	row.Key.Sub, row.Value = n.Batch, n
	return row, err
}
