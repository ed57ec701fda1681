package deploy_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/internal/httpserver/tlstest"
	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	testredis "github.com/tidefill/tidefill/internal/testservers/redis"
	tests3 "github.com/tidefill/tidefill/internal/testservers/s3"
)

// secretData is the content of a Secret or a ConfigMap.
type secretData map[string]string

// servesAsReplicas runs the pods of the chart with separate roles on real servers, without their
// cluster. Users of one pod get results that another one has fetched, and a pod that ends still
// serves while Services send users to others.
func servesAsReplicas(t *testing.T, root string) {
	values, secrets := startServers(t)
	objects := render(t, installed, values)
	var keys corev1.Secret
	typed(t, of(objects, "Secret")[0], &keys)
	secrets[keys.Name] = keys.StringData
	configMap := of(objects, "ConfigMap")[0]
	secrets["ConfigMap "+configMap.GetName()] = secretData{
		"tidefill.yaml": nested(configMap, "data", "tidefill.yaml").(string)}

	all := workloads(t, objects)
	slices.Reverse(all) // users need a pod that knows the runner
	var pods []*runningPod
	for _, w := range all {
		pods = append(pods, startPod(t, w, podRoot(t, root, w, secrets)))
	}
	dispatch, api := pods[0], pods[1]
	if code, _ := dispatch.get("http://" + dispatch.api); code != 0 {
		t.Errorf("a pod that only dispatches answers users with %d", code)
	}

	users, err := client.New("http://"+api.api, client.Options{APIKey: keys.StringData["key"]})
	if err != nil {
		t.Fatal(err)
	}
	defer users.Close()
	const lines = 100
	text := apptest.BatchFile(lines)
	file, err := users.Upload(t.Context(), "lines.jsonl", strings.NewReader(text),
		int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var batch client.Batch
	for {
		batch, err = users.CreateBatch(ctx, client.BatchRequest{InputFileID: file.ID,
			Endpoint: "/v1/chat/completions", CompletionWindow: "24h"})
		if err == nil || ctx.Err() != nil {
			break
		}
		time.Sleep(100 * time.Millisecond) // the models are not published yet
	}
	for err == nil && !batch.Ended() {
		time.Sleep(50 * time.Millisecond)
		batch, err = users.Batch(ctx, batch.ID)
	}
	if err != nil || batch.Counts.Completed != lines {
		t.Fatalf("the batch is %+v (%v)", batch, err)
	}
	var results bytes.Buffer
	if err := users.CopyResultFiles(ctx, batch, &results); err != nil ||
		bytes.Count(results.Bytes(), []byte("\n")) != lines {
		t.Errorf("the results have %d lines (%v)", bytes.Count(results.Bytes(), []byte("\n")), err)
	}

	api.terminate()
	for ready := http.StatusOK; ready == http.StatusOK; {
		ready, _ = api.get("http://" + api.admin + "/readyz")
		if _, err := users.Batch(ctx, batch.ID); err != nil {
			t.Errorf("a pod that ends and is ready answers %v", err)
		}
	}
	if _, err := users.Batch(ctx, batch.ID); err != nil {
		t.Errorf("a pod that ends, before Services send users to others, answers %v", err)
	}
	dispatch.terminate()
	for _, p := range pods {
		p.awaitEnd()
	}
}

// startServers starts PostgreSQL with TLS, a bucket, Redis with a password, and a runner. It
// returns values of the chart and Secrets for them.
func startServers(t *testing.T) (values string, secrets map[string]secretData) {
	t.Helper()
	const password = "redis-5f1c"
	database, dir := testpostgres.Start(t), t.TempDir()
	authority := tlstest.NewAuthority(t)
	cert, key, ca := filepath.Join(dir, "crt"), filepath.Join(dir, "key"), filepath.Join(dir, "ca")
	authority.WritePair(cert, key)
	authority.WriteCA(ca)
	database.ServeTLS(t, cert, key)
	awaitTLS(t, fmt.Sprintf("127.0.0.1:%d", database.Port))
	address, err := url.Parse(database.URL(database.NewDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.User(address.User.Username())
	address.RawQuery = "sslmode=verify-full&sslrootcert=/etc/tidefill-store/metadata-ca.crt"
	values = fmt.Sprintf(`
roles: separate
config:
  store:
    backend: cluster
    cluster:
      metadata: {url: %q}
      objects: {bucket: %s, endpoint: %q, path_style: true}
      live: {url: "redis://%s/0"}
  upstreams: [{url: %q}]
  flowcontrol: {policy: fixed}
  shutdown: {drain: 5s}
store:
  metadata: {secret: db-app, caSecret: db-ca}
  objects: {secret: bucket}
  live: {secret: redis}
`, address, tests3.Bucket, tests3.Start(t).URL,
		testredis.Start(t, "--requirepass", password).Addr, apptest.StartRunner(t, nil))
	return values, map[string]secretData{
		"db-app": {"password": testpostgres.Password},
		"db-ca":  {"ca.crt": read(t, ca)},
		"bucket": {"access-key": tests3.AccessKey, "secret-key": tests3.SecretKey},
		"redis":  {"password": password},
	}
}

// awaitTLS waits until a PostgreSQL server, which reads its configuration in its own time, offers
// TLS: it answers a request for it with an S.
func awaitTLS(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		answer := []byte{0}
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_, err = conn.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47})
			if err == nil {
				_, err = conn.Read(answer)
			}
			conn.Close()
		}
		if answer[0] == 'S' {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("PostgreSQL offers no TLS: it answers %q (%v)", answer, err)
		}
	}
}

// podRoot returns a copy of the image with the volumes of a pod, as its kubelet mounts them.
func podRoot(
	t *testing.T, image string, w workload, secrets map[string]secretData,
) (root string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	root = filepath.Join(t.TempDir(), "root")
	must(os.CopyFS(root, os.DirFS(image)))
	for _, m := range w.Template.Spec.Containers[0].VolumeMounts {
		dir := filepath.Join(root, m.MountPath)
		must(os.RemoveAll(dir))
		must(os.MkdirAll(dir, 0o755))
		i := slices.IndexFunc(w.Template.Spec.Volumes,
			func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			t.Fatalf("%s has no volume %s", w.Name, m.Name)
		}
		write := func(source, key, path string) {
			t.Helper()
			content, has := secrets[source][key]
			if !has {
				t.Errorf("%s has no key %s", source, key)
			}
			file := filepath.Join(dir, path)
			must(os.WriteFile(file, []byte(content), 0o440))
			must(os.Chown(file, 0, user))
		}
		switch v := w.Template.Spec.Volumes[i]; {
		case v.EmptyDir != nil:
			must(os.Chown(dir, 0, user))
			must(os.Chmod(dir, 0o2770))
		case v.ConfigMap != nil:
			write("ConfigMap "+v.ConfigMap.Name, "tidefill.yaml", "tidefill.yaml")
		case v.Secret != nil:
			write(v.Secret.SecretName, "keys.yaml", "keys.yaml")
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				for _, item := range s.Secret.Items {
					write(s.Secret.Name, item.Key, item.Path)
				}
			}
		default:
			t.Errorf("%s has the volume %+v", w.Name, v)
		}
	}
	return root
}

// runningPod is the process of a pod.
type runningPod struct {
	t          *testing.T
	name       string
	api, admin string // addresses
	grace      time.Duration
	process    *exec.Cmd
	ended      chan error
	log        bytes.Buffer // complete when it has ended
}

// startPod starts the process of a pod and waits until it is ready.
func startPod(t *testing.T, w workload, root string) *runningPod {
	t.Helper()
	p := &runningPod{t: t, name: w.Name + "-0", api: freeAddress(t), admin: freeAddress(t),
		grace: time.Duration(*w.Template.Spec.TerminationGracePeriodSeconds) * time.Second,
		ended: make(chan error, 1)}
	container := w.Template.Spec.Containers[0]
	// In a pod, the host's name is that of the pod.
	p.process = contained(t.Context(), root, append(slices.Clone(container.Args), "--node", p.name,
		"--listen", p.api, "--admin-listen", p.admin)...)
	p.process.Stdout, p.process.Stderr = &p.log, &p.log
	if err := p.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.process.Wait() }()
	ready := "http://" + p.admin + container.ReadinessProbe.HTTPGet.Path
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		code, answer := p.get(ready)
		if code == http.StatusOK {
			for _, role := range config.AllRoles {
				if has := strings.Contains(answer, `"`+string(role)+`":{`); has !=
					slices.Contains(w.Roles, role) {
					t.Errorf("%s has the role %s: %v", p.name, role, has)
				}
			}
			return p
		}
		select {
		case err := <-p.ended:
			t.Fatalf("%s has ended: %v\n%s", p.name, err, &p.log)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready: %d %s", p.name, code, answer)
		}
	}
}

// get returns the status and the body of an answer; 0: there is none.
func (p *runningPod) get(from string) (code int, body string) {
	answer, err := http.Get(from)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, text.String()
}

// terminate asks the process to end, as a kubelet does.
func (p *runningPod) terminate() {
	p.t.Helper()
	if err := p.process.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}

// awaitEnd waits until the process has ended within the grace period.
func (p *runningPod) awaitEnd() {
	p.t.Helper()
	select {
	case err := <-p.ended:
		if err != nil || p.t.Failed() {
			p.t.Errorf("%s ended with %v\n%s", p.name, err, &p.log)
		}
		for _, secret := range []string{tests3.SecretKey, testpostgres.Password, "redis-5f1c"} {
			if strings.Contains(p.log.String(), secret) {
				p.t.Errorf("the log of %s shows a secret", p.name)
			}
		}
	case <-time.After(p.grace):
		p.t.Errorf("%s does not end within %v", p.name, p.grace)
	}
}
