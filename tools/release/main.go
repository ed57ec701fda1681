// Command release builds what a release consists of into a directory: an archive for each platform,
// a Debian package for each processor, a bill of materials and checksums. The same commit, version
// and Go release give the same bytes. It runs in the root of the repository.
//
//	release -version v0.1.0 -out dist
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// changed ends the version of a build whose sources are not those of a commit.
const changed = "+changes"

// summary says what the program is, in the name section of its manual page and in the package.
const summary = "Run batch work on the idle capacity of an LLM inference pool"

const homepage = "https://github.com/tidefill/tidefill"

// release is one release while it is built.
type release struct {
	version string
	at      time.Time // time of the commit, which all files have
	out     string
	sbom    string // path of cyclonedx-gomod
	names   []string
}

// program is the program for one platform.
type program struct {
	goos, goarch string
	path         string
	content      []byte
}

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "the `version`, such as v0.1.0")
	flag.StringVar(&r.out, "out", "dist", "the `directory` to write to; it must be empty")
	flag.StringVar(&r.sbom, "sbom", "bin/cyclonedx-gomod",
		"the `program` that lists components")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64",
		"the `platforms`, as GOOS/GOARCH")
	flag.Parse()
	if err := r.build(strings.Split(*platforms, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// build writes all files of the release.
func (r *release) build(platforms []string) error {
	if err := r.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tidefill-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var programs []program
	own := -1 // the program for this machine
	for i, platform := range platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		p, err := r.compile(dir, goos, goarch)
		if err != nil {
			return err
		}
		programs = append(programs, p)
		if goos == runtime.GOOS && goarch == runtime.GOARCH {
			own = i
		}
	}
	if own < 0 {
		return fmt.Errorf("the platforms lack %s/%s, whose program describes itself: add it",
			runtime.GOOS, runtime.GOARCH)
	}
	docs, err := r.documents(programs[own].path, platforms)
	if err != nil {
		return err
	}
	for _, p := range programs {
		if err := r.archive(p, docs); err != nil {
			return err
		}
		if p.goos == "linux" {
			if err := r.debian(p, docs); err != nil {
				return err
			}
		}
	}
	if err := r.components(dir, programs); err != nil {
		return err
	}
	return r.checksums()
}

// check checks the version, the directory and the working tree, and finds the commit's time.
func (r *release) check() error {
	if !regexp.MustCompile(`^(v\d+\.\d+\.\d+|[0-9a-f]{7,})[0-9A-Za-z.+-]*$`).MatchString(r.version) {
		return fmt.Errorf("%q is no version: want one such as v0.1.0 or v0.1.0-rc.1", r.version)
	}
	tree, err := output("git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if tree != "" && !strings.HasSuffix(r.version, changed) {
		return fmt.Errorf("the working tree is not what is committed:\n%scommit it, or add %s to "+
			"the version %s", tree, changed, r.version)
	}
	committed, err := output("git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(committed), 10, 64)
	if err != nil {
		return fmt.Errorf("read the time of the commit: %w", err)
	}
	r.at = time.Unix(seconds, 0).UTC()
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if entries, err := os.ReadDir(r.out); err != nil || len(entries) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty: remove it first", r.out))
	}
	return nil
}

// compile builds the program for a platform, without what the machine or the checkout adds to it.
func (r *release) compile(dir, goos, goarch string) (p program, err error) {
	p = program{goos: goos, goarch: goarch, path: filepath.Join(dir, goos+"-"+goarch, "tidefill")}
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X main.release="+r.version, "-o", p.path, "./cmd/tidefill")
	c.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0",
		"GOFLAGS=-mod=readonly", "GOAMD64=v1", "GOARM64=v8.0")
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return p, fmt.Errorf("build for %s/%s: %w", goos, goarch, err)
	}
	p.content, err = os.ReadFile(p.path)
	return p, err
}

// documents are what the program says of itself, and the licenses of what it contains.
type documents struct {
	completions map[string][]byte // by shell
	manual      map[string][]byte // by file name
	licenses    []byte
}

func (r *release) documents(path string, platforms []string) (d documents, err error) {
	if d.licenses, err = licenses(platforms); err != nil {
		return d, err
	}
	d.completions = map[string][]byte{}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := output(path, "completion", shell)
		if err != nil {
			return d, err
		}
		d.completions[shell] = []byte(script)
	}
	d.manual, err = r.manual(path)
	return d, err
}

// archive writes the archive of a platform: one directory, named as the archive.
func (r *release) archive(p program, docs documents) error {
	name := fmt.Sprintf("tidefill_%s_%s_%s", r.version, p.goos, p.goarch)
	files := []file{
		{"tidefill", 0o755, p.content},
		{licensesFile, 0o644, docs.licenses},
		{"completions/tidefill.bash", 0o644, docs.completions["bash"]},
		{"completions/_tidefill", 0o644, docs.completions["zsh"]},
		{"completions/tidefill.fish", 0o644, docs.completions["fish"]},
	}
	for _, name := range []string{"LICENSE", "README.md"} {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files = append(files, file{name, 0o644, content})
	}
	for page, content := range docs.manual {
		files = append(files, file{"man/man1/" + page, 0o644, content})
	}
	content, err := tarball(name+"/", files, r.at)
	if err != nil {
		return err
	}
	return r.write(name+".tar.gz", content)
}

// write writes a file of the release.
func (r *release) write(name string, content []byte) error {
	r.names = append(r.names, name)
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

// checksums writes SHA256SUMS, as sha256sum --check reads it.
func (r *release) checksums() error {
	var sums strings.Builder
	slices.Sort(r.names)
	for _, name := range r.names {
		content, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
	}
	return r.write("SHA256SUMS", []byte(sums.String()))
}

// output returns the standard output of a command.
func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args, " "), err)
	}
	return string(out), nil
}
