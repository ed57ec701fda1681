package app_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
)

// Files that a configuration names and the daemon can't use are found without a daemon, with the
// place of the key. What a process does not read is not looked at.
func TestFilesOfAConfigurationAreChecked(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("bad.yaml", "- engine: vllm\n  prefix: [x]\n")
	write("empty", "")
	write("secret", "s3cr3t\n")
	write("two", "a\nb")
	write("keys.yaml", "keys: [{hash: nothing}]")
	key, certificate := certificateOf(t)
	write("key.pem", key)
	write("cert.pem", certificate)
	const upstream = "upstreams: [{url: http://a:1}]\n"
	const prometheus = upstream + "telemetry: {prometheus: {url: https://p, "
	const scaled = "pools: [{name: a, models: [m], max: 1"
	const cluster = "store: {backend: cluster, cluster: {metadata: {url: 'postgres://u@h/d'"
	for _, test := range []struct {
		name, file string
		want       []string // none: it is valid
	}{
		{"nothing", upstream, nil},
		{"an absent signal map", upstream + "telemetry:\n  signals: {dir}/none.yaml\n", []string{
			"f.yaml:3: telemetry.signals: read signal map: open {dir}/none.yaml: no such"}},
		{"a signal map that can't be read", upstream + "telemetry: {signals: {dir}/bad.yaml}\n",
			[]string{"f.yaml:2: telemetry.signals: signal map {dir}/bad.yaml:2: "}},
		{"which is not used", "roles: [api, scale]\n" + upstream +
			"telemetry: {signals: {dir}/bad.yaml}\n", nil},
		{"Prometheus under a policy that does not read it",
			prometheus + "token_file: {dir}/none}}\nflowcontrol: {policy: aimd}\n", nil},
		{"an absent token", prometheus + "token_file: {dir}/none}}\n",
			[]string{"f.yaml:2: telemetry.prometheus.token_file: open {dir}/none: "}},
		{"an empty password", prometheus +
			"basic_auth: {username: u, password_file: {dir}/empty}}}\n",
			[]string{"telemetry.prometheus.basic_auth.password_file: {dir}/empty is empty"}},
		{"a password of two rows", prometheus +
			"basic_auth: {username: u, password_file: {dir}/two}}}\n",
			[]string{"telemetry.prometheus.basic_auth.password_file: {dir}/two has a control"}},
		{"variables are not read", prometheus + "token_env: TIDEFILL_ABSENT}}\n", nil},
		{"authorities, and a certificate without its key", prometheus +
			"tls: {ca_file: {dir}/secret, cert_file: {dir}/cert.pem, key_file: {dir}/none}}}\n",
			[]string{"telemetry.prometheus.tls.ca_file: {dir}/secret has no certificate",
				"telemetry.prometheus.tls.cert_file {dir}/cert.pem, tls.key_file {dir}/none: "}},
		{"sound files", prometheus + "token_file: {dir}/secret, tls: {ca_file: {dir}/cert.pem, " +
			"cert_file: {dir}/cert.pem, key_file: {dir}/key.pem}}}\n", nil},
		{"keys", upstream + "auth: {keys_file: {dir}/keys.yaml}\n",
			[]string{"f.yaml:2: auth.keys_file: keys file {dir}/keys.yaml:1: "}},
		{"certificates", upstream + "tls: {cert_file: {dir}/cert.pem, key_file: {dir}/secret}\n",
			[]string{"f.yaml:2: tls: load certificate {dir}/cert.pem with key {dir}/secret: "}},
		{"authorities of clients", upstream + "tls: {cert_file: {dir}/cert.pem, " +
			"key_file: {dir}/key.pem, client_ca_file: {dir}/secret}\n",
			[]string{"f.yaml:2: tls: client authorities {dir}/secret: no certificate"}},
		{"a recording in no directory", upstream + "record: {dir}/none/file\n",
			[]string{"f.yaml:2: record: stat {dir}/none: "}},
		{"a recording that is a directory", upstream + "record: '{dir}'\n",
			[]string{"f.yaml:2: record: {dir} is a directory"}},
		{"the scaler", upstream + scaled + "}]\nscaler: {listen: ':0', tls: {cert_file: " +
			"{dir}/none, key_file: {dir}/key.pem}}\n",
			[]string{"f.yaml:3: scaler.tls: load certificate {dir}/none with"}},
		{"Kubernetes", upstream + scaled + ", kubernetes: {selector: app=a, port: '80'}}]\n" +
			"kubernetes: {kubeconfig: {dir}/none}\n",
			[]string{"f.yaml:3: kubernetes.kubeconfig: read {dir}/none: "}},
		{"Kubernetes, for templates and profiles", "roles: [api]\n" + upstream +
			"registry: {kubernetes: {namespace: aibrix-system}}\nkubernetes: {kubeconfig: " +
			"{dir}/none}\n", []string{"f.yaml:4: kubernetes.kubeconfig: read {dir}/none: "}},
		{"which is not used", upstream + "kubernetes: {kubeconfig: {dir}/none}\n", nil},
		{"PostgreSQL", upstream + cluster + ", password_file: {dir}/empty}}}\n",
			[]string{"f.yaml:2: store.cluster.metadata.password_file: {dir}/empty is empty"}},
		{"a bucket", upstream + cluster + "}, objects: {endpoint: 'http://s', bucket: bucket, " +
			"access_key_file: {dir}/none, secret_key_file: {dir}/empty, ca_file: {dir}/secret}}}\n",
			[]string{"store.cluster.objects.ca_file: {dir}/secret has no certificate",
				"store.cluster.objects.access_key_file: open {dir}/none: ",
				"store.cluster.objects.secret_key_file: file {dir}/empty is empty"}},
		{"Redis", upstream + cluster + "}, live: {url: 'rediss://r:1', password_file: " +
			"{dir}/none, ca_file: {dir}/secret}}}\n",
			[]string{"store.cluster.live.password_file: read the password of Redis: open {dir}/no",
				"store.cluster.live.ca_file: read the certificates of Redis: {dir}/secret cont"}},
		{"several faults, of values and files", upstream + "record: {dir}/none/file\n" +
			"auth: {keys_file: {dir}/none}\napi: {max_requests: 0}\n", []string{
			"f.yaml:4: api.max_requests is 0", "f.yaml:3: auth.keys_file: ", "f.yaml:2: record: "}},
	} {
		write("f.yaml", strings.ReplaceAll(test.file, "{dir}", dir))
		_, err := config.Check(filepath.Join(dir, "f.yaml"), app.CheckFiles)
		faults := config.Faults(err)
		if len(faults) != len(test.want) {
			t.Errorf("%s: got %v, want %d faults", test.name, faults, len(test.want))
			continue
		}
		for i, want := range test.want {
			got := strings.ReplaceAll(faults[i].Error(), dir, "{dir}")
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %s, want it to contain %s", test.name, got, want)
			}
			if strings.Contains(got, "s3cr3t") {
				t.Errorf("%s: the fault shows a secret: %s", test.name, got)
			}
		}
	}
}

// certificateOf returns a new key and a certificate for it, in PEM.
func certificateOf(t *testing.T) (key, certificate string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, text, text, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	in := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return in("PRIVATE KEY", encoded), in("CERTIFICATE", signed)
}
