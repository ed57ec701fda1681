package deploy_test

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/tidefill/tidefill/internal/testservers"
	"github.com/tidefill/tidefill/store/cluster"
)

const clusterDir = manifestsDir + "cluster/"

// The example of several replicas is accepted, and its parts name each other.
func TestClusterExample(t *testing.T) {
	objects := manifests(t, clusterDir, "postgres.yaml", "redis.yaml", "tidefill.yaml")
	checkAll(t, objects)
	checkReplicas(t, objects)
	w, cfg := podOf(t, objects)
	store := cfg.Store.Settings["cluster"].(cluster.Config)
	db, err := postgresOf(of(objects, "Cluster")[0])
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(store.Metadata.URL)
	init := db.Spec.Bootstrap.InitDB
	if err != nil || u.Host != db.Name+"-rw" || u.User.Username() != init.Owner ||
		u.Path != "/"+init.Database || u.Query().Get("sslmode") != "verify-full" {
		t.Errorf("%s is not the database %s of %s at %s-rw (%v)", u, init.Database, init.Owner,
			db.Name, err)
	}
	sync := db.Spec.PostgreSQL.Synchronous
	if db.Spec.Instances != 3 || sync.DataDurability != "required" || !sync.FailoverQuorum {
		t.Errorf("a failover may lose batches: %d instances, %+v", db.Spec.Instances, sync)
	}
	// One more replica runs during an update; each has a connection for notifications too, and
	// operators have 5.
	most, err := strconv.Atoi(db.Spec.PostgreSQL.Parameters["max_connections"])
	if need := (int(w.Replicas)+1)*(store.Metadata.MaxConnections+1) + 5; err != nil ||
		most < need {
		t.Errorf("max_connections is %d, and replicas need %d (%v)", most, need, err)
	}

	redis := redisOf(t)
	if live, err := url.Parse(store.Live.URL); err != nil || live.Host != redis.Name+":6379" {
		t.Errorf("Redis is %s, and replicas use %s (%v)", redis.Name, store.Live.URL, err)
	}
	exists(t, objects, "Service", redis.Name)
	secrets := secretsOf(w)
	for _, secret := range []string{db.Name + "-app", db.Name + "-ca", "tidefill-bucket",
		redis.Spec.Template.Spec.Volumes[0].Secret.SecretName} {
		if !slices.Contains(secrets, secret) {
			t.Errorf("replicas use the Secrets %q, want %s", secrets, secret)
		}
	}
}

// secretsOf returns the names of the Secrets with what replicas need for their servers.
func secretsOf(w workload) (names []string) {
	for _, v := range w.Template.Spec.Volumes {
		if v.Projected != nil {
			for _, s := range v.Projected.Sources {
				names = append(names, s.Secret.Name)
			}
		}
	}
	return names
}

// redisOf returns the Deployment of Redis.
func redisOf(t *testing.T) (d appsv1.Deployment) {
	t.Helper()
	typed(t, of(manifests(t, clusterDir, "redis.yaml"), "Deployment")[0], &d)
	return d
}

// The command of Redis starts a server that asks for the password of the Secret, and whose
// arguments don't show it.
func TestRedisOfTheClusterExample(t *testing.T) {
	const password = "5f1c0e7a"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "password"), []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	program := testservers.Path(t, "redis-server")
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	container := redisOf(t).Spec.Template.Spec.Containers[0]
	script := strings.NewReplacer(container.VolumeMounts[0].MountPath, dir,
		"redis-server -", program+" - --bind 127.0.0.1 --port "+port).Replace(container.Args[0])
	c := exec.Command(container.Command[0], append(container.Command[1:], script)...)
	var log bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = t.TempDir(), &log, &log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			t.Logf("%s", log.String())
		}
	}()
	say := func(command string) string {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		answer := make([]byte, 256)
		if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
			return err.Error()
		}
		n, err := conn.Read(answer)
		if err != nil {
			return err.Error()
		}
		return string(answer[:n])
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		answer := say("PING")
		if strings.HasPrefix(answer, "-NOAUTH") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("Redis answers %q without a password", answer)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if answer := say("AUTH " + password); !strings.HasPrefix(answer, "+OK") {
		t.Errorf("Redis answers the password with %q", answer)
	}
	shown, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c.Process.Pid))
	if err != nil || !bytes.Contains(shown, []byte("redis-server")) ||
		bytes.Contains(shown, []byte(password)) {
		t.Errorf("the arguments are %q (%v)", shown, err)
	}
}
