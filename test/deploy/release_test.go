package deploy_test

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// released is the version of the release that the tests build. Its end permits changes that are not
// committed.
const released = "v0.1.0-test+changes"

// A release has the same bytes whenever it is built, and its parts work: the archive, the image
// of it, the package, the checksums and the bill of materials.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it compiles the lister of components and links twice")
	}
	release, lister := builders(t)
	dir := buildRelease(t, release, lister)
	again := buildRelease(t, release, lister, "TZ=Asia/Tokyo", "LC_ALL=C", "GOFLAGS=-v")
	command(t, dir, "diff", "--recursive", "--brief", dir, again)
	command(t, dir, "sha256sum", "--check", "--strict", "SHA256SUMS")
	if sums := strings.Count(read(t, filepath.Join(dir, "SHA256SUMS")), "\n"); sums != 3 {
		t.Errorf("there are %d checksums, want 3: archive, package, bill of materials", sums)
	}

	name := "tidefill_" + released + "_linux_" + runtime.GOARCH
	unpacked := t.TempDir()
	command(t, unpacked, "tar", "--extract", "--file", filepath.Join(dir, name+".tar.gz"))
	root := filepath.Join(unpacked, name)
	program := filepath.Join(root, "tidefill")
	t.Run("archive", func(t *testing.T) { checkArchive(t, root) })
	t.Run("components", func(t *testing.T) {
		checkComponents(t, filepath.Join(dir, "tidefill_"+released+".cdx.json"), program)
	})
	t.Run("image", func(t *testing.T) {
		unpackedImage(t, buildImage(t, "../../deploy/image/release.Dockerfile", dir,
			"VERSION="+released))
	})
	t.Run("package", func(t *testing.T) {
		if _, err := exec.LookPath("dpkg-deb"); err != nil {
			t.Skip("dpkg is not installed")
		}
		packages, err := filepath.Glob(filepath.Join(dir, "*.deb"))
		if err != nil || len(packages) != 1 {
			t.Fatalf("packages: %v, %v", packages, err)
		}
		checkPackage(t, packages[0])
		t.Run("installed", func(t *testing.T) { installPackage(t, packages[0]) })
	})
}

// builders builds the programs that build releases.
func builders(t *testing.T) (release, lister string) {
	t.Helper()
	dir := t.TempDir()
	release, lister = filepath.Join(dir, "release"), filepath.Join(dir, "cyclonedx-gomod")
	command(t, "../../tools", "go", "build", "-o", release, "./release")
	command(t, "../../tools/sbom", "go", "build", "-o", lister,
		"github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod")
	return release, lister
}

// buildRelease builds a release for this machine, and returns its directory.
func buildRelease(t *testing.T, release, lister string, env ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "dist")
	c := exec.Command(release, "-version", released, "-out", dir, "-sbom", lister,
		"-platforms", "linux/"+runtime.GOARCH)
	c.Dir = "../.."
	c.Env = append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("release: %v\n%s", err, out)
	}
	return dir
}

// command runs a command that must succeed, and returns what it prints.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// checkArchive checks the unpacked archive.
func checkArchive(t *testing.T, root string) {
	program := filepath.Join(root, "tidefill")
	checkStatic(t, program)
	version := command(t, root, program, "--version")
	if !strings.HasPrefix(version, "tidefill "+released+", ") {
		t.Errorf("--version prints %s", version)
	}
	for _, name := range []string{"LICENSE", "README.md"} {
		if read(t, filepath.Join(root, name)) != read(t, filepath.Join("../..", name)) {
			t.Errorf("%s is not that of the repository", name)
		}
	}
	licenses := read(t, filepath.Join(root, "THIRD_PARTY_LICENSES"))
	for module := range strings.Lines(command(t, root, "go", "version", "-m", "tidefill")) {
		if row := strings.Fields(module); row[0] == "dep" && !strings.Contains(licenses,
			"\n"+row[1]+" "+row[2]+"\n") {
			t.Errorf("THIRD_PARTY_LICENSES lacks %s", row[1])
		}
	}
	command(t, root, "bash", "-n", "completions/tidefill.bash")
	for name, begin := range map[string]string{"_tidefill": "#compdef tidefill",
		"tidefill.fish": "# fish completion for tidefill"} {
		if !strings.HasPrefix(read(t, filepath.Join(root, "completions", name)), begin) {
			t.Errorf("completions/%s does not begin with %q", name, begin)
		}
	}
	manual := filepath.Join(root, "man/man1")
	submit := read(t, filepath.Join(manual, "tidefill-batch-submit.1"))
	help := command(t, root, program, "batch", "submit", "--help")
	for _, word := range strings.Fields(help) {
		if flag := strings.TrimRight(word, ".,:;)"); strings.HasPrefix(flag, "--") &&
			!strings.Contains(submit, strings.ReplaceAll(flag, "-", `\-`)) {
			t.Errorf("the page of batch submit has no %s", flag)
		}
	}
	if _, err := exec.LookPath("groff"); err != nil {
		return
	}
	pages, err := filepath.Glob(filepath.Join(manual, "*.1"))
	if err != nil || len(pages) < 40 {
		t.Fatalf("there are %d pages (%v)", len(pages), err)
	}
	out := command(t, root, "groff", append([]string{"-man", "-ww", "-z"}, pages...)...)
	if out != "" {
		t.Errorf("groff warns of\n%s", out)
	}
}

// checkComponents checks that the bill of materials has each module of the program, with a license.
func checkComponents(t *testing.T, path, program string) {
	var bill struct {
		BOMFormat string
		Metadata  struct {
			Component struct{ Name, Version string }
		}
		Components []struct {
			Name, Version, PURL string
			Licenses            []any
			Evidence            struct{ Licenses []any }
		}
	}
	if err := json.Unmarshal([]byte(read(t, path)), &bill); err != nil {
		t.Fatal(err)
	}
	if main := bill.Metadata.Component; bill.BOMFormat != "CycloneDX" ||
		main.Name != "github.com/tidefill/tidefill" || main.Version != released {
		t.Errorf("the bill is a %s of %+v", bill.BOMFormat, main)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"std": info.GoVersion}
	for _, module := range info.Deps {
		want[module.Path] = module.Version
	}
	for _, c := range bill.Components {
		if want[c.Name] != c.Version || !strings.HasPrefix(c.PURL, "pkg:golang/"+c.Name+"@") {
			t.Errorf("%+v is listed; the program has %s", c, want[c.Name])
		}
		if len(c.Licenses)+len(c.Evidence.Licenses) == 0 {
			t.Errorf("%s has no license", c.Name)
		}
		delete(want, c.Name)
	}
	if len(want) > 0 {
		t.Errorf("the bill lacks %v", want)
	}
}

// checkPackage checks what dpkg-deb says of the package.
func checkPackage(t *testing.T, path string) {
	info := command(t, ".", "dpkg-deb", "--info", path)
	for _, want := range []string{"Package: tidefill\n", "Version: 0.1.0~test+changes\n",
		"Architecture: " + runtime.GOARCH + "\n", "Depends: adduser\n", "conffiles"} {
		if !strings.Contains(info, want) {
			t.Errorf("dpkg-deb --info lacks %q:\n%s", want, info)
		}
	}
	files := command(t, ".", "dpkg-deb", "--contents", path)
	for _, want := range []string{"./usr/bin/tidefill", "./usr/share/man/man1/tidefill.1.gz",
		"./usr/share/bash-completion/completions/tidefill", "./etc/tidefill/tidefill.yaml",
		"./usr/lib/systemd/system/tidefill.service", "./usr/share/doc/tidefill/copyright"} {
		if !strings.Contains(files, want+"\n") {
			t.Errorf("the package lacks %s:\n%s", want, files)
		}
	}
	if strings.Count(files, " root/root ") != strings.Count(files, "\n") {
		t.Errorf("there are files that are not root's:\n%s", files)
	}
	root := t.TempDir()
	command(t, ".", "dpkg-deb", "--extract", path, root)
	unit := read(t, filepath.Join(root, "usr/lib/systemd/system/tidefill.service"))
	const run = "ExecStart=/usr/bin/tidefill serve --config /etc/tidefill/tidefill.yaml\n"
	if !strings.Contains(unit, run) || strings.Contains(unit, "/usr/local") {
		t.Errorf("the unit lacks %q", run)
	}
	command(t, root, filepath.Join(root, "usr/bin/tidefill"), "check", "etc/tidefill/tidefill.yaml")
}

// installPackage installs the package, upgrades it, removes and purges it, in a copy of this
// machine's files that is gone with the namespace of its mounts.
func installPackage(t *testing.T, path string) {
	if os.Getuid() != 0 {
		t.Skip("it needs root")
	}
	if _, err := exec.LookPath("adduser"); err != nil {
		t.Skip("adduser is not installed")
	}
	dir := t.TempDir()
	const mounts = `set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
mount --bind /dev "$1/root/dev"
mkdir -p "$1/root/tmp"
cp "$2" "$1/root/tmp/tidefill.deb"
`
	namespace := []string{"--mount", "--propagation", "private", "sh", "-c"}
	c := exec.Command("unshare", append(namespace, mounts, "sh", dir, path)...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Skipf("this machine permits no mounts: %v\n%s", err, out)
	}
	const life = `exec chroot "$1/root" sh -e -c '
export DEBIAN_FRONTEND=noninteractive
dpkg --install /tmp/tidefill.deb
stat --format "%n is of %U:%G, %a" /etc/tidefill /etc/tidefill/tidefill.yaml
runuser -u tidefill -- /usr/bin/tidefill check /etc/tidefill/tidefill.yaml
echo "# ours" >> /etc/tidefill/tidefill.yaml
chmod 0750 /etc/tidefill/tidefill.yaml
dpkg --install /tmp/tidefill.deb
stat --format "then %n is of %U:%G, %a" /etc/tidefill/tidefill.yaml
dpkg --remove tidefill
test ! -e /usr/bin/tidefill
grep "# ours" /etc/tidefill/tidefill.yaml
touch /etc/tidefill/keys.yaml
dpkg --purge tidefill
ls /etc/tidefill
getent passwd tidefill
'`
	got := command(t, ".", "unshare", append(namespace, mounts+life, "sh", dir, path)...)
	for _, want := range []string{"/etc/tidefill is of root:tidefill, 750\n",
		"/etc/tidefill/tidefill.yaml is of root:tidefill, 640\n", "systemctl enable --now tidefill",
		"then /etc/tidefill/tidefill.yaml is of root:tidefill, 750\n", "\n# ours\n",
		"\nkeys.yaml\ntidefill:x:", ":/var/lib/tidefill:/usr/sbin/nologin\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the package's life lacks %q:\n%s", want, got)
		}
	}
}
