package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
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
}

func (c *capabilities) read(ctx context.Context) ([]Sample, error) {
	url := c.runner.Base + runner.CapabilitiesPath
	body, response, taken, err := fetch(ctx, c.client, url, c.runner.Header, "application/json")
	if err != nil {
		return nil, err
	}
	// Pointers distinguish what the runner leaves out from zero.
	var reported struct {
		Queue struct {
			Depth *float64 `json:"depth"`
		} `json:"queue"`
		Resources struct {
			KVCacheUtilization *float64 `json:"kvCacheUtilization"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(body, &reported); err != nil {
		return nil, fmt.Errorf("get %s: parse capabilities: %w", url, err)
	}
	if age, err := strconv.ParseFloat(response.Header.Get("Age"), 64); err == nil && age > 0 &&
		age < 86_400 {
		taken = taken.Add(-time.Duration(age * float64(time.Second)))
	}
	r := flowcontrol.NoReading(flowcontrol.Capabilities, taken)
	if d := reported.Queue.Depth; d != nil && *d >= 0 {
		r.Waiting = *d
	}
	if u := reported.Resources.KVCacheUtilization; u != nil && *u >= 0 {
		r.KVUsed = *u
	}
	return []Sample{{Runner: c.runner.Name, Reading: &r}}, nil
}
