package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

const insertUsed = `INSERT INTO ledger AS l (` + tables.UsedColumns + `, node, incarnation, save)
	VALUES (@tenant, @model, @class, @hour, @c0, @c1, @c2, @c3, @c4, @c5, @c6, @node, @incarnation,
		@save)`

// usedRows is tables.UsedRows with names in the order of their bytes.
var usedRows = ` GROUP BY tenant, model, class, hour
	ORDER BY ` + raw("tenant") + ", " + raw("model") + ", " + raw("class") + ", hour"

func usedArguments(u store.Used, o store.Owner, number int64) args {
	all := args{"tenant": text(u.Tenant), "model": text(u.Model), "class": text(u.Class),
		"hour": tables.Micros(u.Hour), "node": text(o.Node), "incarnation": o.Incarnation,
		"save": number}
	for i, count := range tables.UsedCounts(u) {
		all[fmt.Sprint("c", i)] = count
	}
	return all
}

// AddUsage implements [store.Ledger].
func (db *DB) AddUsage(
	ctx context.Context, o store.Owner, number int64, used []store.Used, before time.Time,
) error {
	// In the same order as other processes, against deadlocks.
	sorted := slices.SortedFunc(slices.Values(used), func(a, b store.Used) int {
		return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.Tenant, b.Tenant),
			cmp.Compare(a.Model, b.Model), cmp.Compare(a.Class, b.Class))
	})
	err := db.write(ctx, func(s *steps) {
		s.require(refusedFenced, "its lease has ended", leaseSeen, db.ownerArguments(o))
		for _, u := range sorted {
			s.do(insertUsed+` ON CONFLICT (hour, tenant, model, class, node) DO UPDATE SET `+
				tables.AddUsedCounts, usedArguments(u, o, number))
		}
		s.do(`DELETE FROM ledger WHERE (hour, tenant, model, class, node) IN
			(SELECT hour, tenant, model, class, node FROM ledger WHERE hour < @before
				FOR UPDATE SKIP LOCKED)`, args{"before": tables.Micros(before)})
	})
	if err != nil {
		return fmt.Errorf("save the usage of %d hours: %w", len(used), err)
	}
	return nil
}

// Usage implements [store.Ledger].
func (db *DB) Usage(ctx context.Context, q store.UsageQuery) (used []store.Used, err error) {
	query := tables.UsageQuery(q, tables.UsageConditions{
		From: "@from::bigint", Until: "@until::bigint", Width: "@width::bigint",
		Tenants: "tenant = ANY (@tenants::text[])", Models: "model = ANY (@models::text[])",
		Order: raw})
	err = db.read(ctx, func(s *steps) {
		used = nil
		s.rows(query, args{"from": tables.Micros(q.From), "until": tables.Micros(q.Until),
			"width": q.Width.Microseconds(), "tenants": texts(q.Tenants),
			"models": texts(q.Models)}, tables.Collect(&used, tables.ScanUsed))
	})
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	return used, nil
}
