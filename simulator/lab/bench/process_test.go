package bench

import (
	"os/exec"
	"testing"
)

// TestPeakOfChildExcludesParent checks that the peak of a child does not include what its parent
// had resident when it started the child, as ru_maxrss does.
func TestPeakOfChildExcludesParent(t *testing.T) {
	ours := make([]byte, 128<<20)
	for i := 0; i < len(ours); i += 4096 {
		ours[i] = 1
	}
	child, err := start(exec.CommandContext(t.Context(), "sh", "-c", "echo ready; read end"))
	if err != nil {
		t.Fatal(err)
	}
	// A shell that is still starting grows, and may end before the watch reads it a second time.
	if _, err := child.readLine(); err != nil {
		t.Fatal(err)
	}
	most := child.watchPeak()
	direct, err := child.peakMemory()
	if err != nil {
		t.Fatal(err)
	}
	child.stdin.Close()
	child.cmd.Wait() // fails: the shell found no line to read
	if peak := most(); peak < direct/2 || peak > 64<<20 {
		t.Errorf("a shell's peak is %d bytes, and was %d, beside %d of ours", peak, direct,
			len(ours))
	}
}
