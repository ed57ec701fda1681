package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// clockVariable holds the seconds by which the clock of a SteppedBinary steps.
const clockVariable = "TIDEFILL_E2E_CLOCK_STEP"

// nowBefore and nowAfter are the place in package time where a clock steps, five seconds after the
// start of the process: the program refuses to start with a clock that is far from its database's.
const (
	nowBefore = "	mono -= startNano\n	sec += unixToInternal - minWall\n"
	nowAfter  = "	mono -= startNano\n	if mono > 5e9 {\n		sec += clockStep\n	}\n" +
		"	sec += unixToInternal - minWall\n"
	clockStep = `package time

import "syscall"

var clockStep = func() int64 {
	value, _ := syscall.Getenv("` + clockVariable + `")
	seconds, _ := atoi(value)
	return int64(seconds)
}()
`
)

var steppedBinary = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	library := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	source, err := os.ReadFile(filepath.Join(library, "time.go"))
	if err != nil {
		return "", err
	}
	stepped := strings.Replace(string(source), nowBefore, nowAfter, 1)
	if stepped == string(source) {
		return "", errors.New("time.Now of this Go has another form: change nowBefore")
	}
	// Nothing replaces the clock of a Go program from outside: it reads it without the C library.
	replaced := map[string]string{}
	for name, content := range map[string]string{"time.go": stepped, "clockstep.go": clockStep} {
		path := filepath.Join(binaries.dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return "", err
		}
		replaced[filepath.Join(library, name)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	path := filepath.Join(binaries.dir, "overlay.json")
	if err == nil {
		err = os.WriteFile(path, overlay, 0o600)
	}
	if err != nil {
		return "", err
	}
	return build("tidefill-stepped", "-overlay", path)
})

// SteppedBinary returns the path of the program with a clock that steps by [Options.ClockStep].
func SteppedBinary(t testing.TB) string { return built(t, steppedBinary) }
