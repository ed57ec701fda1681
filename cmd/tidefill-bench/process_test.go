package main

import (
	"os/exec"
	"testing"
)

// ru_maxrss of a child counts what its parent had resident when it was started; its own peak does not.
func TestThePeakOfAChildIsItsOwn(t *testing.T) {
	ours := make([]byte, 128<<20)
	for i := 0; i < len(ours); i += 4096 {
		ours[i] = 1
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "read end")
	end, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := &process{cmd: cmd}
	most := child.watchPeak()
	direct, err := child.peakMemory()
	if err != nil {
		t.Fatal(err)
	}
	end.Close()
	cmd.Wait() // there is no line to read
	if peak := most(); peak < direct/2 || peak > 64<<20 {
		t.Errorf("a shell's peak is %d bytes, and was %d, beside %d of ours", peak, direct, len(ours))
	}
}
