package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/internal/testservers/redis"
	"github.com/tidefill/tidefill/internal/testservers/s3"
)

// clocksApart is how far the clocks of the daemons of an installation differ.
const clocksApart = 30 * time.Second

// installation is three daemons without a shared disk, and all servers that they need. Each daemon
// reaches each server through a relay of its own.
type installation struct {
	t        *testing.T
	database string
	primary  *postgres.Server
	standby  *postgres.Server
	bucket   *s3.Server
	live     *redis.Server
	stub     *Stub
	names    []string
	daemons  map[string]*Daemon
	links    map[string]*links // by daemon
	down     map[string]bool   // daemons that a fault has ended, and ends
	exits    int               // of daemons by themselves
}

// links are the relays of a daemon.
type links struct {
	postgres [2]*Relay // to the servers of both roles, in no order
	bucket   *Relay
	runner   *Relay
	live     *Relay
	storage  *s3.Proxy // behind bucket, for faults of single requests
}

func newInstallation(t *testing.T, tr *Trial) *installation {
	t.Helper()
	in := &installation{t: t, primary: postgres.Start(t), bucket: s3.Start(t),
		live: redis.Start(t), stub: NewStub(t, "m"), names: []string{"a", "b", "c"},
		daemons: map[string]*Daemon{}, links: map[string]*links{}, down: map[string]bool{}}
	in.stub.MinDelay, in.stub.MaxDelay = 5*time.Millisecond, 25*time.Millisecond
	in.stub.Intercept(refuseMarked)
	in.database = in.primary.NewDatabase(t)
	in.standby = in.primary.Standby(t)
	in.synchronous()
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(postgres.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	access, secret := s3.Secrets(t)
	// The binary with clocks that step takes minutes to build, with a standard library of its own.
	binary := sized(Binary, SteppedBinary)(t)
	for i, name := range in.names {
		storage := s3.StartProxy(t, in.bucket)
		l := &links{
			postgres: [2]*Relay{NewRelay(t, address(in.primary)), NewRelay(t, address(in.standby))},
			bucket:   NewRelay(t, strings.TrimPrefix(storage.URL, "http://")),
			runner:   NewRelay(t, strings.TrimPrefix(in.stub.URL, "http://")),
			live:     NewRelay(t, in.live.Addr), storage: storage}
		in.links[name] = l
		const cluster = "store.cluster."
		step := time.Duration(i-1) * clocksApart / 2
		in.daemons[name] = tr.Watch(NewDaemon(t, Options{Binary: binary, ClockStep: step,
			Args: []string{"--node", name}, Set: with(
				"store.backend=cluster",
				fmt.Sprintf(cluster+"metadata.url=postgres://%s@%s,%s/%s?sslmode=disable",
					postgres.User, l.postgres[0].Address, l.postgres[1].Address, in.database),
				cluster+"metadata.password_file="+password,
				cluster+"metadata.tuning.timeout=3s",
				cluster+"objects.endpoint=http://"+l.bucket.Address,
				cluster+"objects.bucket="+s3.Bucket, cluster+"objects.path_style=true",
				cluster+"objects.access_key_file="+access,
				cluster+"objects.secret_key_file="+secret,
				cluster+"live.url=redis://"+l.live.Address,
				"dispatch.tuning.lease_ttl="+bucketLease.String(),
				"dispatch.retry.attempts=100", "dispatch.retry.tuning.deaths=100",
				fmt.Sprintf("flowcontrol.fixed.per_runner=%d", nodePerRunner),
				fmt.Sprintf("upstreams=[{url: %q, headers: {%s: %s}}]", "http://"+l.runner.Address,
					NodeHeader, name),
			)}))
	}
	return in
}

func address(s *postgres.Server) string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// synchronous has commits wait for the standby, so that its promotion loses none.
func (in *installation) synchronous() {
	in.primary.Exec(in.t, "postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'")
	in.primary.Exec(in.t, "postgres", "SELECT pg_reload_conf()")
}

// failOver kills the primary, promotes the standby, and makes a new standby. A standby that still
// lacks what users have seen, since the primary crashed just before, is not promoted: those who
// manage failovers with synchronous replication don't either.
func (in *installation) failOver() {
	in.t.Helper()
	old := in.primary
	old.AwaitStandby(in.t)
	old.Kill(in.t)
	in.standby.Promote(in.t)
	in.primary = in.standby
	// Without a standby, commits would wait for one.
	in.primary.Exec(in.t, "postgres", "ALTER SYSTEM RESET synchronous_standby_names")
	in.primary.Exec(in.t, "postgres", "SELECT pg_reload_conf()")
	in.standby = in.primary.Standby(in.t)
	in.synchronous()
	for _, l := range in.links {
		for _, relay := range l.postgres {
			if relay.Target() == address(old) {
				relay.Retarget(address(in.standby))
			}
		}
	}
	old.Discard(in.t)
}

// supervise starts daemons again that have ended by themselves, as Kubernetes does: one that can't
// reach its store at its start ends with the reason.
func (in *installation) supervise() {
	for _, name := range in.names {
		if d := in.daemons[name]; !in.down[name] && !d.Alive() {
			in.exits++
			d.Start()
		}
	}
}

// client returns a client each of whose requests goes to one of the daemons at random, as through a
// load balancer that does not check their health.
func (in *installation) client(random *rand.Rand, limit time.Duration) *Client {
	balancer := &anyHost{random: random, transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: limit}).DialContext}}
	for _, name := range in.names {
		balancer.hosts = append(balancer.hosts, in.daemons[name].Listen)
	}
	return &Client{URL: "http://" + balancer.hosts[0],
		HTTP: &http.Client{Transport: balancer, Timeout: limit}}
}

// anyHost sends each request to a host at random.
type anyHost struct {
	hosts     []string
	transport *http.Transport

	mu     sync.Mutex
	random *rand.Rand
}

func (b *anyHost) RoundTrip(request *http.Request) (*http.Response, error) {
	b.mu.Lock()
	host := b.hosts[b.random.IntN(len(b.hosts))]
	b.mu.Unlock()
	request = request.Clone(request.Context())
	request.URL.Host, request.Host = host, host
	return b.transport.RoundTrip(request)
}
