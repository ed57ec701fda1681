package postgres

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// Tenants implements [store.Status].
func (db *DB) Tenants(ctx context.Context) (all []store.TenantTotals, err error) {
	err = db.read(ctx, func(s *steps) {
		all = nil
		s.rows(tables.TenantTotals("@expiry"), args{"expiry": tables.Micros(db.expiry())},
			tables.Collect(&all, tables.ScanTenantTotals))
	})
	if err != nil {
		return nil, fmt.Errorf("sum up tenants: %w", err)
	}
	return all, nil
}
