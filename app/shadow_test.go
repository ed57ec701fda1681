package app_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/recording"
)

// A shadow is switched on while the daemon runs. It is in the metrics and in the recording.
func TestShadowIsSwitchedOnByAReload(t *testing.T) {
	d := startReloadingWith(t, "record: {dir}/recording.jsonl\n")
	d.await("/metrics", `tidefill_runner_allowance_lines{`)
	if page := d.page("/metrics"); strings.Contains(page, "tidefill_shadow_allowance_lines{") {
		t.Error("there is a shadow without a configuration of one")
	}
	content, err := os.ReadFile(d.file)
	if err != nil {
		t.Fatal(err)
	}
	d.overwrite(strings.Replace(string(content), "{policy: fixed}",
		"{policy: fixed, shadow: {policy: aimd, aimd: {start: 5}}}", 1))
	d.hup()
	d.await("/metrics", "\n"+`tidefill_shadow_allowance_lines{policy="aimd",pool="m"} 5`)
	page := d.page("/metrics")
	for _, want := range []string{
		`tidefill_shadow_difference_lines{policy="aimd",pool="m"} -59`,
		`tidefill_shadow_limited{policy="aimd",pool="m",reason="growing"} 1`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
	want := recording.Shadow{Models: []int{1}, Policy: "aimd", Lines: 5, Reason: "growing",
		Granted: 64, GrantedReason: "runner_limit"}
	path := filepath.Join(filepath.Dir(d.file), "recording.jsonl")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		found := false
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = recording.Read(path, strings.NewReader(string(text)),
			func(e recording.Entry) error {
				found = found || e.Shadow != nil && reflect.DeepEqual(*e.Shadow, want)
				return nil
			})
		if found && err == nil {
			return
		}
		if time.Now().After(deadline) { // an empty file is not flushed yet
			t.Fatalf("the recording has no entry %+v: %v\n%s", want, err, text)
		}
	}
}
