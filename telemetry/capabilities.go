package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/runner"
)

// capabilities reads GET /v1/capabilities of a runner (Model Runner API).
type capabilities struct {
	runner Runner
	client *http.Client
	onDrop func(drop)
}

// largestCapabilities limits the size of an answer, in bytes.
const largestCapabilities = 1 << 20

func (c *capabilities) read(ctx context.Context) ([]Sample, error) {
	// Pointers distinguish what the runner leaves out from zero.
	var reported struct {
		Queue struct {
			Depth *float64 `json:"depth"`
		} `json:"queue"`
		Resources struct {
			KVCacheUtilization *float64 `json:"kvCacheUtilization"`
		} `json:"resources"`
	}
	var age float64
	taken, err := fetch(ctx, c.client, request{url: c.runner.Base + runner.CapabilitiesPath,
		header: c.runner.Header, accept: "application/json", limit: largestCapabilities},
		func(header http.Header, body io.Reader) error {
			age, _ = strconv.ParseFloat(header.Get("Age"), 64)
			text, err := io.ReadAll(body)
			if err != nil {
				return err
			}
			if err := json.Unmarshal(text, &reported); err != nil {
				return fmt.Errorf("parse capabilities: %w (%w)", err, errGarbled)
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	if age > 0 && age < 86_400 {
		taken = taken.Add(-time.Duration(age * float64(time.Second)))
	}
	r := flowcontrol.NoReading(flowcontrol.Capabilities, taken)
	c.use(&r.Waiting, "waiting", reported.Queue.Depth)
	c.use(&r.KVUsed, "kv_used", reported.Resources.KVCacheUtilization)
	return []Sample{{Runner: c.runner.Name, Reading: &r}}, nil
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
