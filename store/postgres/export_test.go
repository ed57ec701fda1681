package postgres

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidefill/tidefill/store/tables"
)

// ClaimLock is the advisory lock of claims of a batch.
func ClaimLock(batch string) int64 { return lockKeys(lockClaims, batch)[0] }

// Migrations is the number of migrations.
var Migrations = len(migrations)

// KeepsStatements reports whether connections keep prepared statements.
func KeepsStatements(db *DB) bool {
	return db.pool.Config().ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
}

// ListingPlan returns the plan of a listing in JSON.
func ListingPlan(
	t testing.TB, db *DB, order string, ascending bool, tags int,
) (plan string) {
	t.Helper()
	l := listing{tables.Listing{Tenant: "t", States: tables.AllStates, Sort: "created",
		Other: "due", Ascending: ascending, Tags: make([]int64, tags), High: tables.Never}}
	if order == "due" {
		l.Sort, l.Other = "due", "created"
	}
	limit := int64(20)
	within := tables.Span{To: tables.Position{At: tables.Never - 1, Seq: tables.Never - 1}}
	return planOf(t, db, l.query(), l.arguments(within, &limit))
}

// ChangesPlan returns the plan of the query of changes.
func ChangesPlan(t testing.TB, db *DB) string {
	t.Helper()
	_, from, err := db.liveBatches(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return planOf(t, db, changesQuery, args{"timeline": from.timeline,
		"read": from.read.String(), "limit": int64(100)})
}

// ClaimPlan returns the plan of a claim.
func ClaimPlan(t testing.TB, db *DB) string {
	t.Helper()
	return planOf(t, db, claimQuery, args{"node": "n", "incarnation": int64(1), "now": nil,
		"batch": "batch_5", "model": "m", "limit": int64(1), "held": []int64{}})
}

func planOf(t testing.TB, db *DB, query string, a args) string {
	t.Helper()
	var plan json.RawMessage
	err := db.pool.QueryRow(context.WithoutCancel(t.Context()), "EXPLAIN (FORMAT JSON) "+query,
		pgx.QueryExecModeExec, a).Scan(&plan)
	if err != nil {
		t.Fatal(err)
	}
	return string(plan)
}

// MigrationScripts returns the migrations.
func MigrationScripts() []string { return migrations }

// ApplicationName returns the name of a connection in the server's list.
func ApplicationName(t testing.TB, db *DB) (name string) {
	t.Helper()
	err := db.pool.QueryRow(t.Context(), "SELECT current_setting('application_name')",
		pgx.QueryExecModeExec).Scan(&name)
	if err != nil {
		t.Fatal(err)
	}
	return name
}
