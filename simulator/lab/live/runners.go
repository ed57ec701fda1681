package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"reflect"
	"strconv"
	"syscall"
	"time"

	"github.com/tidefill/tidefill/internal/testservers"
	"github.com/tidefill/tidefill/runner/emulator"
	"github.com/tidefill/tidefill/simulator"
)

// RunnerRole is the role in which this program is an emulated runner.
const RunnerRole = "runner"

// servedModel is what the runners serve.
const servedModel = "emulated-model"

// runners are the emulated runners of a trial.
type runners struct {
	start   func(i int) (*process, error)
	address []string
	process []*process
	faults  []emulator.Faults // of each
	latest  emulator.Timing   // of all that were read
}

// startRunners starts the runners of a scenario. role makes this program run ServeRunner.
func startRunners(ctx context.Context, setup simulator.Setup, role []string) (*runners, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &runners{}
	r.start = func(i int) (*process, error) {
		config, err := json.Marshal(runnerConfig(setup, i))
		if err != nil {
			return nil, err
		}
		return startProcess(program, []string{r.address[i], string(config)}, role)
	}
	for range setup.Scenario.Pool.Replicas {
		address, err := testservers.FreeAddress()
		if err != nil {
			return nil, err
		}
		r.address, r.process = append(r.address, address), append(r.process, nil)
		r.faults = append(r.faults, emulator.Faults{})
	}
	for i := range r.process {
		if err := r.launch(ctx, i); err != nil {
			r.kill()
			return nil, err
		}
	}
	return r, nil
}

// launch starts a runner, also after it was killed, and waits until it serves. Its faults go on.
func (r *runners) launch(ctx context.Context, i int) (err error) {
	if r.process[i], err = r.start(i); err != nil {
		return fmt.Errorf("start runner %d: %w", i, err)
	}
	err = r.process[i].await(ctx, func(ctx context.Context) error {
		_, err := fetch(ctx, r.url(i)+"/health")
		return err
	})
	if err != nil || reflect.DeepEqual(r.faults[i], emulator.Faults{}) {
		return err
	}
	return r.setFaults(ctx, i)
}

func (r *runners) url(i int) string { return "http://" + r.address[i] }

func (r *runners) kill() {
	for _, p := range r.process {
		if p != nil {
			p.kill()
		}
	}
}

// change changes some of a runner's faults and leaves the others, which may overlap. A runner that
// was killed gets them when it starts. Faults happen one after the other, so no lock is needed.
func (r *runners) change(ctx context.Context, i int, change func(*emulator.Faults)) error {
	change(&r.faults[i])
	if r.process[i].hasEnded() {
		return nil
	}
	return r.setFaults(ctx, i)
}

// readTiming reads the lateness of a runner's iterations. One that is gone has none.
func (r *runners) readTiming(ctx context.Context, i int) error {
	if r.process[i].hasEnded() {
		return nil
	}
	text, err := fetch(ctx, r.url(i)+"/admin/timing")
	if err != nil {
		return err
	}
	var t emulator.Timing
	if err := json.Unmarshal(text, &t); err != nil {
		return fmt.Errorf("read %s/admin/timing: %w", r.url(i), err)
	}
	if t.LateP99 >= r.latest.LateP99 {
		r.latest = t
	}
	return nil
}

func (r *runners) setFaults(ctx context.Context, i int) error {
	body, err := json.Marshal(r.faults[i])
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, "POST", r.url(i)+"/admin/faults",
		bytes.NewReader(body))
	if err != nil {
		return err
	}
	_, err = do(request)
	return err
}

// runnerConfig is a replica of the scenario's pool. Answers have the length that their request
// states as min_tokens.
func runnerConfig(setup simulator.Setup, i int) emulator.Config {
	pool := setup.Scenario.Pool
	c := emulator.DefaultConfig()
	c.Models = []string{servedModel}
	c.Profile, c.Scheduling, c.PrefixCaching = pool.Profile, pool.Scheduling, pool.PrefixCaching
	c.KVTokens, c.MaxBatchedTokens, c.MaxSeqs = pool.KVTokens, pool.MaxBatchedTokens, pool.MaxSeqs
	c.MaxModelLen, c.MaxQueueDepth = 0, 1<<20 // as in the simulation
	c.Output = emulator.Lengths{Median: 1, Max: 1}
	c.Seed = setup.Seed + uint64(i) + 1
	c.RunnerID = "runner-" + strconv.Itoa(i)
	return c
}

// ServeRunner is the main function of a runner's process: its arguments are the address and the
// configuration. It returns when the standard input ends, so that no runner outlives the trial.
func ServeRunner(args []string, stdin io.Reader) error {
	if len(args) != 2 {
		return fmt.Errorf("got %d arguments, want an address and a configuration", len(args))
	}
	var config emulator.Config
	if err := json.Unmarshal([]byte(args[1]), &config); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	listener, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		io.Copy(io.Discard, stdin)
		stop()
	}()
	return emulator.Serve(ctx, config, listener)
}

// asker asks for pages and sets faults.
var asker = &http.Client{Timeout: 5 * time.Second}

func fetch(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return nil, err
	}
	return do(request)
}

func do(request *http.Request) ([]byte, error) {
	response, err := asker.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %.300s", request.Method, request.URL, response.Status, body)
	}
	return body, err
}
