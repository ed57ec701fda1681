package tables

// Row is a row of a query's result.
type Row interface {
	Scan(dest ...any) error
}
