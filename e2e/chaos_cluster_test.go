package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/postgres"
)

// clusterStore returns the settings of a store with its records in a database of the server.
func clusterStore(t *testing.T, server *postgres.Server) []string {
	t.Helper()
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(postgres.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"store.backend=cluster", "store.cluster.metadata.password_file=" + password,
		fmt.Sprintf("store.cluster.metadata.url=postgres://%s@127.0.0.1:%d/%s?sslmode=disable",
			postgres.User, server.Port, server.NewDatabase(t))}
}

// Daemons with their records in PostgreSQL take over from each other as those on one machine do.
func TestChaosClusterTakesOver(t *testing.T) {
	server := postgres.Start(t)
	for fault, hit := range map[string]func(t *testing.T, n *nodes, sender string) (heal func()){
		"killed": killNode, "frozen": freezeNode} {
		t.Run("the sender "+fault, func(t *testing.T) {
			testTakeOver(t, 3, fault, hit, clusterStore(t, server)...)
		})
	}
}

// PostgreSQL crashes and comes back, and its connections are cut, while batches run. Users get 503
// at most, and every line has one result.
func TestChaosClusterOutages(t *testing.T) {
	tr := begin(t, "2 daemons, PostgreSQL killed and cut off")
	server := postgres.Start(t)
	n := startNodes(t, tr, 2, clusterStore(t, server)...)
	inputs := map[string]Lines{}
	feed := func(name string) {
		lines := NewLines(name, "m", 1500)
		inputs[n.any(len(inputs)).Client().Submit(t, lines.Content, "").ID] = lines
	}
	sent := func() int { return len(n.stub.AttemptList(Lines{})) }
	for round := range sized(3, 20) {
		feed(fmt.Sprintf("outage-%d", round))
		from := sent()
		await(t, 20*time.Second, "that lines are sent", func() bool { return sent() > from+100 })
		if round%3 == 2 {
			for database := range 3 {
				server.Cut(t, fmt.Sprintf("db%d", database+1))
			}
		} else {
			server.Kill(t)
			time.Sleep(time.Duration(round) * time.Second)
			server.Restart(t)
		}
		from = sent()
		await(t, 30*time.Second, "that lines are sent again", func() bool {
			return sent() > from+100
		})
		tr.Tried++
	}
	for id, lines := range inputs {
		d := n.any(1)
		b := d.Client().AwaitEnd(t, id, 2*time.Minute)
		sum := d.Client().CheckOnce(t, b, lines)
		tr.Lost += sum.Lost
		tr.Doubled += sum.Doubled
		d.Client().CheckComplete(t, b, lines)
		d.Verify(t, id)
	}
	if tr.Resent = n.stub.Repeats(); tr.Resent > 3*nodePerRunner*tr.Tried {
		t.Errorf("%d lines were sent again after %d outages", tr.Resent, tr.Tried)
	}
}
