package redis

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// MasterName is the name by which Sentinels know the primary.
const MasterName = "tidefill"

// Replicated is a primary with one replica, and three Sentinels that watch them.
type Replicated struct {
	Primary, Replica *Server
	Sentinels        []*Server
}

// StartReplicated starts a primary, its replica and three Sentinels, which promote the replica
// about a second after the primary has ended.
func StartReplicated(t testing.TB) *Replicated {
	t.Helper()
	r := &Replicated{Primary: Start(t)}
	host, port, _ := strings.Cut(r.Primary.Addr, ":")
	r.Replica = Start(t, "--replicaof", host+" "+port, "--repl-diskless-sync-delay", "0")
	await(t, "the replica to follow", func() bool {
		return strings.Contains(r.Replica.Do("INFO", "replication"), "master_link_status:up")
	})
	for range 3 {
		file := filepath.Join(t.TempDir(), "sentinel.conf")
		config := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 2\n"+
			"sentinel down-after-milliseconds %[1]s 500\n"+
			"sentinel failover-timeout %[1]s 3000\n", MasterName, host, port)
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		own := freePort(t)
		r.Sentinels = append(r.Sentinels, launch(t, own, file, "--sentinel", "--port", own,
			"--bind", "127.0.0.1"))
	}
	await(t, "the Sentinels to know each other and the replica", func() bool {
		for _, s := range r.Sentinels {
			info := s.Do("INFO", "sentinel")
			if !strings.Contains(info, "slaves=1,sentinels=3") {
				return false
			}
		}
		return true
	})
	return r
}

// StartCluster starts three primaries that share the slots of a cluster.
func StartCluster(t testing.TB) []*Server {
	t.Helper()
	var nodes []*Server
	for range 3 {
		port := freePort(t)
		nodes = append(nodes, StartAt(t, port, "--cluster-enabled", "yes",
			"--cluster-node-timeout", "2000", "--cluster-port", freePort(t),
			"--cluster-config-file", filepath.Join(t.TempDir(), "nodes.conf")))
	}
	const slots = 16384
	for i, s := range nodes {
		from, to := i*slots/len(nodes), (i+1)*slots/len(nodes)-1
		if answer := s.Do("CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(from),
			fmt.Sprint(to)); answer != "+OK" {
			t.Fatalf("add slots: %s", answer)
		}
		s.Do("CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i+1))
	}
	for _, s := range nodes[1:] {
		host, port, _ := strings.Cut(nodes[0].Addr, ":")
		bus := ""
		for i, a := range nodes[0].program.Args {
			if a == "--cluster-port" {
				bus = nodes[0].program.Args[i+1]
			}
		}
		if answer := s.Do("CLUSTER", "MEET", host, port, bus); answer != "+OK" {
			t.Fatalf("join the cluster: %s", answer)
		}
	}
	await(t, "the cluster to be complete", func() bool {
		for _, s := range nodes {
			info := s.Do("CLUSTER", "INFO")
			if !strings.Contains(info, "cluster_state:ok") ||
				!strings.Contains(info, "cluster_known_nodes:3") {
				return false
			}
		}
		return true
	})
	return nodes
}

func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(startWait); !done(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", startWait, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
