//go:build unix

package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
)

// clusterConfig writes a configuration of the cluster store in a database and a directory.
func clusterConfig(t *testing.T, address string) (file string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	u.User = url.User(u.User.Username())
	return writeFile(t, "cluster.yaml", fmt.Sprintf(`data: %s
store:
  backend: cluster
  cluster:
    metadata:
      url: %s
      password_file: %s
`, t.TempDir(), u, writeFile(t, "password", password)))
}

func wantOutput(t *testing.T, got outcome, want string) {
	t.Helper()
	if !strings.Contains(got.out+got.errors, want) {
		t.Errorf("printed %q and %q, want %q", got.out, got.errors, want)
	}
}

func TestMigratePostgreSQL(t *testing.T) {
	server := testpostgres.Start(t)
	database := server.NewDatabase(t)
	file := clusterConfig(t, server.URL(database))
	wantOutput(t, must(t, 0, "migrate", "--config", file, "--dry-run"),
		"there is no schema: version")
	wantOutput(t, must(t, 0, "migrate", "--config", file), "created the schema, version")
	wantOutput(t, must(t, 0, "migrate", "--config", file), "nothing to do")
	server.Exec(t, database, "UPDATE schema_version SET version = 1000")
	for _, flag := range []string{"--dry-run=true", "--dry-run=false"} {
		got := must(t, 1, "migrate", "--config", file, flag)
		wantOutput(t, got, "run the release that wrote it, or a later one")
		wantOutput(t, got, "store.cluster.metadata: ")
	}
}

func TestMigrateEmbedded(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	file := writeFile(t, "embedded.yaml", "data: "+data)
	wantOutput(t, must(t, 0, "migrate", "--config", file, "--dry-run"),
		"there is no schema: version")
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("a dry run has created the directory: %v", err)
	}
	wantOutput(t, must(t, 0, "migrate", "--config", file), "created the schema, version")
	wantOutput(t, must(t, 0, "migrate", "--config", file, "--dry-run"), "nothing to do")
}

func TestMigrateFromAnOlderVersion(t *testing.T) {
	server := testpostgres.Start(t)
	database := server.NewDatabase(t)
	file := clusterConfig(t, server.URL(database))
	first, err := os.ReadFile(filepath.Join("..", "..", "store", "postgres", "migrations",
		firstMigration(t)))
	if err != nil {
		t.Fatal(err)
	}
	server.Exec(t, database, string(first))
	server.Exec(t, database, `CREATE TABLE schema_version (version bigint NOT NULL);
		INSERT INTO schema_version VALUES (1);
		INSERT INTO cluster (id, created) VALUES ('c', 0)`)
	wantOutput(t, must(t, 0, "migrate", "--config", file, "--dry-run"),
		"the schema would be migrated from version 1 to ")
	wantOutput(t, must(t, 0, "migrate", "--config", file), "migrated the schema from version 1 to ")
}

func firstMigration(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("..", "..", "store", "postgres", "migrations"))
	if err != nil || len(entries) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	return entries[0].Name()
}
