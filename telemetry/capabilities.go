package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/runner"
)

// capabilities reads GET /v1/capabilities of a runner (Model Runner API).
type capabilities struct {
	runner   Runner
	client   *http.Client
	onDrop   func(drop)
	answered bool // it has given its capabilities once
	// starts is when it began to answer 503 without having given them; zero: it answers otherwise.
	// No answer changes nothing.
	starts time.Time
}

// largestCapabilities limits the size of an answer, in bytes.
const largestCapabilities = 1 << 20

// longestStart is how long 503 stops a runner that has never given its capabilities. The largest
// models load in less. A line that comes too early is refused and costs no attempt, but a
// server without capabilities that answers 503 for ever would get none at all.
const longestStart = 30 * time.Minute

// reported is what a runner answers. Pointers distinguish what it leaves out from zero.
type reported struct {
	Health string `json:"health"`
	Models struct {
		Loaded    []struct{ ID string } `json:"loaded"`
		Loading   []struct{ ID string } `json:"loading"`
		Available []string              `json:"available"`
	} `json:"models"`
	Queue struct {
		Depth    *float64 `json:"depth"`
		MaxDepth *float64 `json:"maxDepth"`
	} `json:"queue"`
	Resources struct {
		KVCacheUtilization *float64 `json:"kvCacheUtilization"`
	} `json:"resources"`
}

func (c *capabilities) read(ctx context.Context) ([]Sample, error) {
	var got reported
	var age float64
	taken, err := fetch(ctx, c.client, request{url: c.runner.Base + runner.CapabilitiesPath,
		header: c.runner.Header, accept: "application/json", limit: largestCapabilities},
		func(header http.Header, body io.Reader) error {
			age, _ = strconv.ParseFloat(header.Get("Age"), 64)
			text, err := io.ReadAll(body)
			if err != nil {
				return err
			}
			if err := json.Unmarshal(text, &got); err != nil {
				return fmt.Errorf("parse capabilities: %w (%w)", err, errGarbled)
			}
			return nil
		})
	switch {
	case errors.Is(err, errUnavailable):
		if c.starts.IsZero() {
			c.starts = time.Now()
		}
	case stateOf(err) != stateAway:
		c.starts = time.Time{}
	}
	// %v hides errUnavailable, where the error says more about the runner than that.
	switch {
	case errors.Is(err, errUnavailable) && !c.answered && time.Since(c.starts) > longestStart:
		//nolint:errorlint // see above
		return nil, fmt.Errorf("%v for %v, so it has no capabilities: %w", err, longestStart,
			errUnknownPage)
	case errors.Is(err, errUnavailable) && !c.answered && c.isRefusedUnknown(ctx):
		//nolint:errorlint // see above
		return nil, fmt.Errorf("%v, as for every path that the server does not have: %w", err,
			errUnknownPage)
	case errors.Is(err, errUnavailable):
		err = fmt.Errorf("%v: %w", err, errStarting) //nolint:errorlint // see above
		return []Sample{{Runner: c.runner.Name, State: &runner.State{Starting: true,
			KVUsed: math.NaN()}}}, err
	case err != nil:
		return nil, err
	}
	c.answered = true
	if age > 0 && age < 86_400 {
		taken = taken.Add(-time.Duration(age * float64(time.Second)))
	}
	r := flowcontrol.NoReading(flowcontrol.Capabilities, taken)
	c.use(&r.Waiting, "waiting", got.Queue.Depth)
	c.use(&r.KVUsed, "kv_used", got.Resources.KVCacheUtilization)
	state := runner.State{Unhealthy: strings.EqualFold(got.Health, string(runner.Unhealthy)),
		Queue: r.Waiting, KVUsed: r.KVUsed, NotLoaded: got.notLoaded()}
	c.use(&state.MaxQueue, "max_queue", got.Queue.MaxDepth)
	return []Sample{{Runner: c.runner.Name, Reading: &r, State: &state}}, nil
}

// unknownPath is a path that no server has.
const unknownPath = runner.CapabilitiesPath + "/tidefill-asks-for-a-page-that-does-not-exist"

// isRefusedUnknown reports whether the server answers 503 to paths that it does not have, while it
// lists models: then 503 does not say that a runner starts. Some proxies (HAProxy) do so for paths
// without a backend. A runner that starts may list models already, but knows which paths it has; a
// proxy whose runner is not up yet lists no models.
func (c *capabilities) isRefusedUnknown(ctx context.Context) bool {
	ask := func(path string) error {
		_, err := fetch(ctx, c.client, request{url: c.runner.Base + path, header: c.runner.Header,
			accept: "application/json", limit: largestCapabilities},
			func(http.Header, io.Reader) error { return nil })
		return err
	}
	return errors.Is(ask(unknownPath), errUnavailable) && ask("/v1/models") == nil
}

// mostModels limits how many models of an answer are used.
const mostModels = 1000

// notLoaded lists the models that are loading or available and not loaded. A model that the answer
// does not name may be another name of one that is loaded.
func (r *reported) notLoaded() (names []string) {
	loaded := map[string]bool{}
	for _, m := range r.Models.Loaded {
		loaded[m.ID] = true
	}
	add := func(name string) {
		if name != "" && !loaded[name] && len(names) < mostModels {
			names = append(names, name)
		}
	}
	for _, m := range r.Models.Loading {
		add(m.ID)
	}
	for _, name := range r.Models.Available {
		add(name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// use sets a field of a reading to what the runner reported, if that has no fault.
func (c *capabilities) use(field *float64, signal string, reported *float64) {
	if reported == nil {
		return
	}
	if of := faultOf(*reported); of != "" {
		c.onDrop(drop{signal, of})
		return
	}
	*field = *reported
}
