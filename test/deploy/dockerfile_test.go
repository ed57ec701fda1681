package deploy_test

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

var emptyIndex = empty.Index

// buildImage builds the image of a Dockerfile without a daemon. It knows the instructions that
// those of this project have. The first stage is this machine: its commands run in the directory of
// the context, and what they write below /out goes to a directory of the test.
func buildImage(t *testing.T, dockerfile, context string, arguments ...string) v1.Image {
	t.Helper()
	parsed, err := parser.Parse(strings.NewReader(read(t, dockerfile)))
	if err != nil {
		t.Fatal(err)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(stages) != 2 || stages[1].BaseName != "scratch" {
		t.Fatalf("%s has %d stages, want one that builds and one from scratch", dockerfile,
			len(stages))
	}
	out := t.TempDir()
	for _, c := range stages[0].Commands {
		switch c := c.(type) {
		case *instructions.RunCommand:
			runBuild(t, strings.Join(c.CmdLine, " "), context, out, arguments)
		case *instructions.CopyCommand, *instructions.ArgCommand,
			*instructions.WorkdirCommand: // of the machine
		default:
			t.Fatalf("%s: the test does not know %s", dockerfile, c)
		}
	}
	files := newLayer()
	var cfg v1.Config
	for _, c := range stages[1].Commands {
		switch c := c.(type) {
		case *instructions.CopyCommand:
			source := c.SourcePaths[0]
			if below, ok := strings.CutPrefix(source, "/out/"); ok {
				source = filepath.Join(out, below)
			}
			files.copy(t, source, c.DestPath, c.Chown)
		case *instructions.VolumeCommand:
			cfg.Volumes = set(c.Volumes)
		case *instructions.ExposeCommand:
			cfg.ExposedPorts = set(c.Ports)
		case *instructions.UserCommand:
			cfg.User = c.User
		case *instructions.StopSignalCommand:
			cfg.StopSignal = c.Signal
		case *instructions.EntrypointCommand:
			cfg.Entrypoint = c.CmdLine
		case *instructions.CmdCommand:
			cfg.Cmd = c.CmdLine
		default:
			t.Fatalf("%s: the test does not know %s", dockerfile, c)
		}
	}
	layer, err := tarball.LayerFromOpener(files.open(t))
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	if image, err = mutate.Config(image, cfg); err != nil {
		t.Fatal(err)
	}
	return image
}

// runBuild runs a command of the stage that builds.
func runBuild(t *testing.T, command, context, out string, arguments []string) {
	t.Helper()
	c := exec.Command("sh", "-c", strings.ReplaceAll(command, "/out/", out+"/"))
	c.Dir = context
	c.Env = append(append(os.Environ(), "TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH),
		arguments...)
	if output, err := c.CombinedOutput(); err != nil {
		t.Fatalf("RUN %s: %v\n%s", command, err, output)
	}
}

func set(names []string) map[string]struct{} {
	all := map[string]struct{}{}
	for _, name := range names {
		all[name] = struct{}{}
	}
	return all
}

// imageFiles are the files of a layer, by path.
type imageFiles struct {
	headers map[string]*tar.Header
	content map[string][]byte
}

func newLayer() *imageFiles {
	return &imageFiles{map[string]*tar.Header{}, map[string][]byte{}}
}

// copy adds what COPY adds: a file, or an empty directory, with the directories above it.
func (f *imageFiles) copy(t *testing.T, source, destination, owner string) {
	t.Helper()
	info, err := os.Stat(source)
	if err != nil {
		t.Fatal(err)
	}
	h := &tar.Header{Mode: int64(info.Mode().Perm())}
	if owner != "" {
		uid, gid, _ := strings.Cut(owner, ":")
		if h.Uid, err = strconv.Atoi(uid); err == nil {
			h.Gid, err = strconv.Atoi(gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if strings.HasSuffix(destination, "/") {
		destination = path.Join(destination, path.Base(source))
	}
	h.Name = strings.TrimPrefix(destination, "/")
	if info.IsDir() {
		err = filepath.WalkDir(source, func(p string, _ fs.DirEntry, err error) error {
			if p != source {
				t.Errorf("%s is not empty: %s", source, p)
			}
			return err
		})
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	} else {
		h.Typeflag, h.Size = tar.TypeReg, info.Size()
		f.content[h.Name], err = os.ReadFile(source)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.headers[h.Name] = h
	for dir := path.Dir(strings.TrimSuffix(h.Name, "/")); dir != "."; dir = path.Dir(dir) {
		if f.headers[dir+"/"] == nil {
			f.headers[dir+"/"] = &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}
		}
	}
}

// open returns the layer as a tar file, sorted by name.
func (f *imageFiles) open(t *testing.T) tarball.Opener {
	t.Helper()
	var file bytes.Buffer
	w := tar.NewWriter(&file)
	var names []string
	for name := range f.headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := w.WriteHeader(f.headers[name]); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.content[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Bytes())), nil }
}

// onlyImage reads the image of an OCI layout.
func onlyImage(t *testing.T, dir string) v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has %v (%v), want one image", manifest, err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// freeAddress returns an address that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
