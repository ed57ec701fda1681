package tables

import "github.com/tidefill/tidefill/store"

// TenantTotals returns the query whose rows ScanTenantTotals reads. expiry is its parameter: the
// time up to which files have expired.
func TenantTotals(expiry string) string {
	return `SELECT tenant, CAST(sum(batches) AS BIGINT), CAST(sum(active) AS BIGINT),
			CAST(sum(files) AS BIGINT), CAST(sum(bytes) AS BIGINT) FROM (
			SELECT tenant, count(*) AS batches, count(*) FILTER (WHERE state NOT IN
				('completed', 'failed', 'expired', 'cancelled')) AS active, 0 AS files, 0 AS bytes
			FROM batches GROUP BY tenant
			UNION ALL SELECT tenant, 0, 0, count(*), 0 FROM files WHERE expires > ` + expiry + `
			GROUP BY tenant
			UNION ALL SELECT tenant, 0, 0, 0, bytes FROM usage
		) AS parts GROUP BY tenant HAVING sum(batches) > 0 OR sum(files) > 0 OR sum(bytes) > 0`
}

// ScanTenantTotals reads a row of TenantTotals.
func ScanTenantTotals(row Row) (t store.TenantTotals, err error) {
	err = row.Scan(&t.Tenant, &t.Batches, &t.Active, &t.Files, &t.Bytes)
	return t, err
}
