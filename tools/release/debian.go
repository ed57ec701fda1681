package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"time"
)

// debianDir has what only the package contains: its configuration and its scripts.
const debianDir = "deploy/debian"

// unit is the systemd unit. It names the program where administrators install it.
const unit = "deploy/systemd/tidefill.service"

// debian writes the Debian package of a program. Its architecture has the name that Go has for it,
// which holds for amd64 and arm64.
func (r *release) debian(p program, docs documents) error {
	files, err := r.installed(p, docs)
	if err != nil {
		return err
	}
	size := 0
	for _, f := range files {
		size += len(f.content)
	}
	version := debianVersion(r.version, r.at)
	control := []file{
		{"control", 0o644, fmt.Appendf(nil, `Package: tidefill
Version: %s
Architecture: %s
Maintainer: Tidefill maintainers <%s>
Installed-Size: %d
Depends: adduser
Recommends: ca-certificates
Section: net
Priority: optional
Homepage: %s
Description: %s
 Tidefill takes batches through the OpenAI Batch API and sends their requests to
 vLLM, SGLang and other OpenAI-compatible servers while interactive traffic
 leaves capacity idle.
`, version, p.goarch, homepage, (size+1023)/1024, homepage, summary)},
		{"conffiles", 0o644, []byte("/etc/tidefill/tidefill.yaml\n")},
	}
	for _, name := range []string{"postinst", "prerm", "postrm"} {
		script, err := os.ReadFile(path.Join(debianDir, name))
		if err != nil {
			return err
		}
		control = append(control, file{name, 0o755, script})
	}
	members := []file{{"debian-binary", 0o644, []byte("2.0\n")}}
	for _, part := range []struct {
		name  string
		files []file
	}{{"control.tar.gz", control}, {"data.tar.gz", files}} {
		content, err := tarball("./", part.files, r.at)
		if err != nil {
			return err
		}
		members = append(members, file{part.name, 0o644, content})
	}
	return r.write(fmt.Sprintf("tidefill_%s_%s.deb", version, p.goarch), archived(members, r.at))
}

// installed returns the files that the package installs.
func (r *release) installed(p program, docs documents) ([]file, error) {
	files := []file{
		{"usr/bin/tidefill", 0o755, p.content},
		{"usr/share/bash-completion/completions/tidefill", 0o644, docs.completions["bash"]},
		{"usr/share/zsh/vendor-completions/_tidefill", 0o644, docs.completions["zsh"]},
		{"usr/share/fish/vendor_completions.d/tidefill.fish", 0o644, docs.completions["fish"]},
	}
	licenses, err := compressed(docs.licenses)
	if err != nil {
		return nil, err
	}
	files = append(files, file{"usr/share/doc/tidefill/" + licensesFile + ".gz", 0o644, licenses})
	for page, content := range docs.manual {
		packed, err := compressed(content)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"usr/share/man/man1/" + page + ".gz", 0o644, packed})
	}
	for _, f := range []struct{ from, to string }{
		{unit, "usr/lib/systemd/system/tidefill.service"},
		{debianDir + "/tidefill.yaml", "etc/tidefill/tidefill.yaml"},
		{debianDir + "/copyright", "usr/share/doc/tidefill/copyright"},
	} {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return nil, err
		}
		if f.from == unit {
			content = bytes.ReplaceAll(content, []byte("/usr/local/bin/"), []byte("/usr/bin/"))
		}
		files = append(files, file{f.to, 0o644, content})
	}
	return files, nil
}

// debianVersion returns a version as dpkg orders it: v0.1.0-rc.1 is before v0.1.0, and builds of
// later commits, as git describe names them, are after it. A commit without a tag is before all.
func debianVersion(version string, at time.Time) string {
	number, tagged := strings.CutPrefix(version, "v")
	if !tagged {
		return fmt.Sprintf("0~%s.%s", at.Format("20060102"), number)
	}
	later := regexp.MustCompile(`-(\d+)-(g[0-9a-f]+)`)
	number = later.ReplaceAllString(number, "+$1.$2")
	return strings.Replace(number, "-", "~", 1)
}

// archived returns members as an ar file.
func archived(members []file, at time.Time) []byte {
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, m := range members {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", m.path, at.Unix(), 0, 0,
			0o100000|m.mode, len(m.content))
		b.Write(m.content)
		if len(m.content)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}
