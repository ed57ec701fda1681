package tables

import (
	"time"

	"github.com/tidefill/tidefill/store"
)

// UsedColumns are those of [ScanUsed].
const UsedColumns = `tenant, model, class, hour, requests, failed, input, output, total, cached,
	reasoning`

// UsedSums are the expressions of UsedColumns over a group of rows of the ledger.
const UsedSums = `tenant, model, class, hour, ` + usedSums

const usedSums = `CAST(sum(requests) AS BIGINT) AS requests, CAST(sum(failed) AS BIGINT),
	CAST(sum(input) AS BIGINT), CAST(sum(output) AS BIGINT), CAST(sum(total) AS BIGINT),
	CAST(sum(cached) AS BIGINT), CAST(sum(reasoning) AS BIGINT)`

// UsedRows groups the rows of the ledger as [ExportUsed] reads them.
const UsedRows = ` GROUP BY tenant, model, class, hour ORDER BY tenant, model, class, hour`

// AddUsedCounts is the part of an upsert that adds the counts of a new row to those of the row in
// the table l, unless its owner has saved them before.
const AddUsedCounts = `requests = l.requests + excluded.requests,
	failed = l.failed + excluded.failed,
	input = l.input + excluded.input,
	output = l.output + excluded.output,
	total = l.total + excluded.total,
	cached = l.cached + excluded.cached,
	reasoning = l.reasoning + excluded.reasoning,
	incarnation = excluded.incarnation, save = excluded.save
	WHERE (l.incarnation, l.save) < (excluded.incarnation, excluded.save)`

// UsedCounts returns the values of UsedColumns after hour.
func UsedCounts(u store.Used) []any {
	t := u.Tokens
	return []any{u.Requests, u.Failed, t.InputTokens, t.OutputTokens, t.TotalTokens,
		t.CachedTokens, t.ReasoningTokens}
}

// ScanUsed reads UsedColumns.
func ScanUsed(row Row) (u store.Used, err error) {
	t := &u.Tokens
	var hour int64
	err = row.Scan(&u.Tenant, &u.Model, &u.Class, &hour, &u.Requests, &u.Failed, &t.InputTokens,
		&t.OutputTokens, &t.TotalTokens, &t.CachedTokens, &t.ReasoningTokens)
	u.Hour = time.UnixMicro(hour).UTC()
	return u, err
}

// ExportUsed reads UsedColumns.
func ExportUsed(from Row) (store.Row, error) {
	u, err := ScanUsed(from)
	return store.Row{Key: store.RowKey{Name: u.Tenant, Sub: u.Model, Third: u.Class,
		Number: Micros(u.Hour)}, Value: u}, err
}

// UsageConditions are the conditions of a query of the ledger in the words of a database.
type UsageConditions struct {
	From, Until, Width string // parameters, in microseconds
	Tenants, Models    string // that the columns tenant and model are among those asked for
	// Order is the expression by which a column of text is ordered by its bytes.
	Order func(column string) string
}

// UsageQuery returns the query of a [store.Ledger], whose rows ScanUsed reads.
func UsageQuery(q store.UsageQuery, in UsageConditions) string {
	where := " WHERE hour >= " + in.From + " AND hour < " + in.Until
	if len(q.Tenants) > 0 {
		where += " AND " + in.Tenants
	}
	if len(q.Models) > 0 {
		where += " AND " + in.Models
	}
	columns, groups, order := "", "bucket", "bucket"
	for _, by := range []struct {
		column string
		one    bool
	}{{"tenant", q.ByTenant}, {"model", q.ByModel}, {"class", q.ByClass}} {
		if !by.one {
			columns += "'' AS " + by.column + ", "
			continue
		}
		columns += by.column + ", "
		groups += ", " + by.column
		order += ", " + in.Order(by.column)
	}
	return "SELECT " + columns + "bucket, " + usedSums + ` FROM (SELECT tenant, model, class,
			hour - hour % ` + in.Width + ` AS bucket, requests, failed, input, output, total, cached,
			reasoning FROM ledger` + where + `) AS used
		GROUP BY ` + groups + " HAVING sum(requests) > 0 ORDER BY " + order
}
