package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/internal/testservers/s3"
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

// bucket returns the settings of a store with its files and results in the bucket of the server.
func bucket(t *testing.T, server *s3.Server) []string {
	t.Helper()
	access, secret := s3.Secrets(t)
	const of = "store.cluster.objects."
	return []string{of + "endpoint=" + server.URL, of + "bucket=" + s3.Bucket,
		of + "path_style=true", of + "access_key_file=" + access, of + "secret_key_file=" + secret}
}

// Daemons that share nothing but PostgreSQL and a bucket take over from each other, also while the
// bucket is away for seconds.
func TestChaosClusterWithABucket(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := beginOnBucket(t, "3 daemons, PostgreSQL and a bucket")
	objects := s3.Start(t)
	set := append(clusterStore(t, postgres.Start(t)), bucket(t, objects)...)
	n := startNodes(t, tr, 3, append(set, "dispatch.tuning.lease_ttl="+bucketLease.String())...)
	inputs := map[string]Lines{}
	most := 0 // lines that may be sent again
	for round := range sized(2, 20) {
		for i := range 2 {
			lines := NewLines(fmt.Sprintf("bucket-%d-%d", round, i), "m", 3000)
			inputs[n.any(i).Client().Submit(t, lines.Content, "").ID] = lines
		}
		before := time.Now()
		sender := ""
		await(t, 20*time.Second, "that a daemon sends", func() bool {
			sent := n.stub.AttemptList(Lines{}).After(before)
			sender = sent.Sender()
			return len(sent) > 500
		})
		if round%2 == 1 {
			objects.Kill()
			time.Sleep(3 * time.Second)
			if err := objects.Resume(); err != nil {
				t.Fatal(err)
			}
			tr.Tried++
			continue
		}
		killed := time.Now()
		heal := killNode(t, n, sender)
		lately := n.stub.AttemptList(Lines{}).After(killed.Add(-commitInterval))
		most += nodePerRunner + len(lately)
		await(t, bucketLease+5*time.Second, "that another daemon sends", func() bool {
			for _, s := range n.stub.AttemptList(Lines{}).After(killed) {
				if s.Node != sender {
					return true
				}
			}
			return false
		})
		heal()
		tr.Tried++
	}
	n.checkResults(t, tr, inputs)
	n.checkUsed(t, inputs)
	if tr.Resent = n.stub.Repeats(); tr.Resent > most {
		t.Errorf("%d lines were sent again, want at most %d", tr.Resent, most)
	}
}

// bucketLease is the shortest lease with results in a bucket: four times what a record waits for
// its commit.
const bucketLease = 8 * time.Second

// commitInterval is how long a record of a segment may wait for its commit, and take to commit on a
// busy machine.
const commitInterval = 4 * time.Second

// Daemons with their records in PostgreSQL take over from each other as those on one machine do.
func TestChaosClusterTakesOver(t *testing.T) {
	t.Parallel()
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
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := beginOnBucket(t, "2 daemons, PostgreSQL killed and cut off")
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
	n.checkResults(t, tr, inputs)
	n.checkUsed(t, inputs)
	if tr.Resent = n.stub.Repeats(); tr.Resent > 3*nodePerRunner*tr.Tried {
		t.Errorf("%d lines were sent again after %d outages", tr.Resent, tr.Tried)
	}
}

// checkResults checks that every line of the batches has one result.
func (n *nodes) checkResults(t *testing.T, tr *Trial, inputs map[string]Lines) {
	t.Helper()
	for id, lines := range inputs {
		d := n.any(1)
		b := d.Client().AwaitEnd(t, id, 2*time.Minute)
		sum := d.Client().CheckOnce(t, b, lines)
		tr.Lost += sum.Lost
		tr.Doubled += sum.Doubled
		d.Client().CheckComplete(t, b, lines)
		d.Verify(t, id)
	}
}

// checkUsed checks that the ledger has the lines of the batches, which are all that there are.
func (n *nodes) checkUsed(t *testing.T, inputs map[string]Lines) {
	t.Helper()
	lines := 0
	for _, of := range inputs {
		lines += len(of.Bodies)
	}
	n.any(1).Client().CheckUsed(t, lines)
}
