package deploy_test

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	corev1 "k8s.io/api/core/v1"
)

const user = 65532

// The program runs as the image's user where it can write its data directory alone.
func TestImage(t *testing.T) {
	root := unpackedImage(t, buildImage(t, "../../deploy/image/Dockerfile", "../.."))
	if os.Getuid() != 0 {
		t.Skip("running it in a chroot needs root")
	}
	t.Run("commands", func(t *testing.T) {
		for _, args := range [][]string{{"version"}, {"serve", "--help"}} {
			output, err := contained(t.Context(), root, args...).CombinedOutput()
			if err != nil || !strings.Contains(string(output), "tidefill") {
				t.Errorf("tidefill %s: %v\n%s", strings.Join(args, " "), err, output)
			}
		}
	})
	t.Run("chart", func(t *testing.T) { servesAsInstalled(t, root) })
	t.Run("replicas", func(t *testing.T) { servesAsReplicas(t, root) })
}

// unpackedImage checks an image and returns a directory with its files. It has the program,
// authorities and a data volume, and nothing else. The program is static and stripped.
func unpackedImage(t *testing.T, image v1.Image) (root string) {
	t.Helper()
	dir := t.TempDir()
	index, err := layout.Write(dir, emptyIndex)
	if err != nil {
		t.Fatal(err)
	}
	if err := index.AppendImage(image); err != nil {
		t.Fatal(err)
	}
	image = onlyImage(t, dir)
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{User: "65532:65532", StopSignal: "SIGTERM",
		Entrypoint:   []string{"/tidefill"},
		Cmd:          []string{"serve", "--config", "/etc/tidefill/tidefill.yaml"},
		Volumes:      map[string]struct{}{"/var/lib/tidefill": {}},
		ExposedPorts: map[string]struct{}{"8080": {}, "8081": {}, "9090": {}}}
	if diff := cmp.Diff(want, file.Config); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	root = filepath.Join(t.TempDir(), "root")
	got := unpack(t, image, root)
	wantFiles := []string{
		"etc 0:0 755", "etc/ssl 0:0 755", "etc/ssl/certs 0:0 755",
		"etc/ssl/certs/ca-certificates.crt 0:0 644", "tidefill 0:0 755",
		"var 0:0 755", "var/lib 0:0 755", "var/lib/tidefill 65532:65532 755",
	}
	if diff := cmp.Diff(wantFiles, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	checkStatic(t, filepath.Join(root, "tidefill"))
	return root
}

// contained returns a command that runs the program in the image's files as its user.
func contained(ctx context.Context, root string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "/tidefill", args...)
	c.Dir = "/"
	c.Env = []string{}
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Pdeathsig: syscall.SIGKILL,
		Credential: &syscall.Credential{Uid: user, Gid: user}}
	return c
}

// checkStatic checks that a program needs no library and has no symbols.
func checkStatic(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a %v: it is not static", p.Type)
		}
	}
	for _, name := range []string{".symtab", ".debug_info", ".zdebug_info"} {
		if f.Section(name) != nil {
			t.Errorf("the program has the section %s: it is not stripped", name)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the program has %d MB", info.Size()/1e6)
}

// unpack writes the files of an image, as a container sees them, and lists them.
func unpack(t *testing.T, image v1.Image, root string) (list []string) {
	t.Helper()
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	flat := mutate.Extract(image)
	defer flat.Close()
	for files := tar.NewReader(flat); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s %d:%d %o", h.Name, h.Uid, h.Gid, h.Mode))
		path := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.Mkdir(path, 0o755)
		} else {
			var content []byte
			if content, err = io.ReadAll(files); err == nil {
				err = os.WriteFile(path, content, os.FileMode(h.Mode))
			}
		}
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(path, h.Uid, h.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// servesAsInstalled runs the pod of the chart, without its cluster: the image with the ConfigMap
// and the Secret, its arguments, and its probes.
func servesAsInstalled(t *testing.T, root string) {
	objects := render(t, installed, read(t, "testdata/values/minimal.yaml"))
	set, _ := podOf(t, objects)
	var secret corev1.Secret
	typed(t, of(objects, "Secret")[0], &secret)
	config := nested(of(objects, "ConfigMap")[0], "data", "tidefill.yaml").(string)
	for path, text := range map[string]string{
		"etc/tidefill/tidefill.yaml":  config,
		"etc/tidefill-keys/keys.yaml": secret.StringData["keys.yaml"],
	} {
		path = filepath.Join(root, path)
		if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	container := set.Template.Spec.Containers[0]
	api, admin := freeAddress(t), freeAddress(t)
	args := append(container.Args, "--listen", api, "--admin-listen", admin)
	var log bytes.Buffer
	daemon := contained(t.Context(), root, args...)
	daemon.Stdout, daemon.Stderr = &log, &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()

	status := func(url, key string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+key)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	ready := "http://" + admin + container.ReadinessProbe.HTTPGet.Path
	for deadline := time.Now().Add(30 * time.Second); status(ready, "") != http.StatusOK; {
		select {
		case err := <-ended:
			t.Fatalf("the daemon has ended: %v\n%s", err, &log)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the readiness probe fails with %d", status(ready, ""))
		}
	}
	for _, p := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe} {
		if got := status("http://"+admin+p.HTTPGet.Path, ""); got != http.StatusOK {
			t.Errorf("%s answers %d", p.HTTPGet.Path, got)
		}
	}
	files := "http://" + api + "/v1/files"
	if with, without := status(files, secret.StringData["key"]), status(files, "no"); with !=
		http.StatusOK || without != http.StatusUnauthorized {
		t.Errorf("the key of the Secret gets %d, another %d", with, without)
	}
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the daemon ended with %v\n%s", err, &log)
		}
	case <-time.After(45 * time.Second):
		t.Error("the daemon does not stop within the grace period")
	}
	if t.Failed() {
		t.Log(log.String())
	}
}
