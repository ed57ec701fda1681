package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// addUsed adds what an owner has counted, unless it has done so with the number before.
func addUsed(
	ctx context.Context, s *session, u store.Used, o store.Owner, number int64,
) error {
	values := append([]any{u.Tenant, u.Model, u.Class, tables.Micros(u.Hour)},
		tables.UsedCounts(u)...)
	return s.exec(ctx, `INSERT INTO ledger AS l (`+tables.UsedColumns+`, node, incarnation, save)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (hour, tenant, model, class, node) DO UPDATE SET `+tables.AddUsedCounts,
		append(values, o.Node, o.Incarnation, number)...)
}

// AddUsage implements [store.Ledger].
func (db *DB) AddUsage(
	ctx context.Context, o store.Owner, number int64, used []store.Used, before time.Time,
) error {
	err := db.add(ctx, func(s *session) error {
		if err := db.requireLease(ctx, s, o); err != nil {
			return err
		}
		for _, u := range used {
			if err := addUsed(ctx, s, u, o, number); err != nil {
				return err
			}
		}
		return s.exec(ctx, `DELETE FROM ledger WHERE hour < ?`, tables.Micros(before))
	})
	if err != nil {
		return fmt.Errorf("save the usage of %d hours: %w", len(used), err)
	}
	return nil
}

// Usage implements [store.Ledger].
func (db *DB) Usage(ctx context.Context, q store.UsageQuery) (used []store.Used, err error) {
	width := q.Width.Microseconds()
	args := []any{width, tables.Micros(q.From), tables.Micros(q.Until)}
	for _, name := range slices.Concat(q.Tenants, q.Models) {
		args = append(args, name)
	}
	in := func(column string, names []string) string {
		return column + " IN (?" + strings.Repeat(", ?", max(len(names)-1, 0)) + ")"
	}
	query := tables.UsageQuery(q, tables.UsageConditions{From: "?", Until: "?", Width: "?",
		Tenants: in("tenant", q.Tenants), Models: in("model", q.Models),
		Order: func(column string) string { return column }})
	err = db.read(ctx, func(s *session) error {
		used = nil
		return s.rows(ctx, query, args, tables.Collect(&used, tables.ScanUsed))
	})
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	return used, nil
}
