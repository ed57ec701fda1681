package deploy_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/test/deploy/page"
)

// The commands of the page install all files that its configuration names before they check it, as
// the user of the unit.
func TestInstallationBySystemd(t *testing.T) {
	const name = "../../docs/deploy.md"
	var file, commands string
	for _, b := range page.Blocks(read(t, name)) {
		switch {
		case b.Language == "yaml" && file == "":
			file = b.Text
		case b.Language == "sh" && commands == "" && strings.Contains(b.Text, "systemctl enable"):
			commands = b.Text
		}
	}
	cfg, err := config.Parse(name, []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	const installed = "/etc/tidefill/tidefill.yaml"
	wanted := []string{installed, cfg.Auth.KeysFile, cfg.TLS.CertFile, cfg.TLS.KeyFile}
	checked := false
	for _, row := range strings.Split(commands, "\n") {
		words := strings.Fields(row)
		switch {
		case len(words) > 0 && words[0] == "install" && strings.HasSuffix(row, "/"):
			into := words[len(words)-1]
			wanted = slices.DeleteFunc(wanted, func(file string) bool {
				return path.Dir(file) == path.Clean(into) && slices.Contains(words, path.Base(file))
			})
		case row == "runuser -u tidefill -- tidefill check "+installed:
			checked = true
			if len(wanted) > 0 {
				t.Errorf("%s checks %s before it installs %v", name, installed, wanted)
			}
		case strings.HasPrefix(row, "systemctl enable") && !checked:
			t.Errorf("%s starts the daemon before it checks %s", name, installed)
		}
	}
}
