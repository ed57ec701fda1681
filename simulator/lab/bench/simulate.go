package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// simulatedPool is a large pool over a day and a night, with more batch work than it can finish.
const simulatedPool = `name: bench
horizon: %s
pool: {profile: llama-70b-a100, replicas: 12}
interactive: {generator: conversation, rate: 8, shape: diurnal}
jobs:
  - {name: backlog, kind: bal}
`

// benchSimulate simulates a day of twelve replicas, without and with batch work, in one process as
// users run it, and then two days.
func benchSimulate(ctx context.Context, l *environment) ([]figure, error) {
	once := l.sizes.simulated
	duration := figure{What: fmt.Sprintf("Simulate %s of 12 replicas, twice", once), Unit: "s",
		Goal: atMost(60)}
	memory := figure{What: duration.What + ", peak memory", Unit: "MiB", Goal: atMost(476)}
	longer := figure{What: fmt.Sprintf("CPU time of simulating %s against %s", 2*once, once),
		Goal: atMost(2.2)}
	for run := range l.runs {
		l.logf("simulate: run %d of %d", run+1, l.runs)
		short, err := l.simulate(ctx, once)
		if err != nil {
			return nil, err
		}
		long, err := l.simulate(ctx, 2*once)
		if err != nil {
			return nil, err
		}
		duration.Values = append(duration.Values, short.took.Seconds())
		duration.Detail = fmt.Sprintf("%s s of CPU", number(short.cpu.Seconds()))
		memory.Values = append(memory.Values, mebibytes(short.peak))
		longer.Values = append(longer.Values, long.cpu.Seconds()/short.cpu.Seconds())
		longer.Detail = fmt.Sprintf("%s against %s s, peak %s MiB", number(long.cpu.Seconds()),
			number(short.cpu.Seconds()), number(mebibytes(long.peak)))
	}
	return []figure{duration, memory, longer}, nil
}

// simulated is the cost of a simulation.
type simulated struct {
	took, cpu time.Duration
	peak      int64 // bytes
}

func (l *environment) simulate(ctx context.Context, horizon time.Duration) (simulated, error) {
	file := filepath.Join(l.dir, "simulate.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, simulatedPool, horizon), 0o600); err != nil {
		return simulated{}, err
	}
	begun := time.Now()
	cmd := exec.CommandContext(ctx, l.binary, "simulate", file, "--policy", "headroom")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return simulated{}, err
	}
	peak := (&process{cmd: cmd}).watchPeak()
	err := cmd.Wait()
	took, most := time.Since(begun), peak()
	if err != nil {
		return simulated{}, fmt.Errorf("simulate %s: %w\n%s", horizon, err, output.Bytes())
	}
	return simulated{took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), most}, nil
}
