package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestDurationsHaveTheirUnitInBothFormats(t *testing.T) {
	log := func(format string) string {
		var out bytes.Buffer
		newLogger(format, slog.LevelInfo, &out).Info("done", "lines", 3,
			"duration", 5079*time.Millisecond, slog.Group("limits", "delay", 90*time.Second))
		return out.String()
	}
	if text := log("text"); !strings.Contains(text, "duration=5.079s limits.delay=1m30s") {
		t.Errorf("text: %s", text)
	}
	var got struct {
		Time     time.Time
		Lines    int
		Duration string
		Limits   struct{ Delay string }
	}
	row := log("json")
	if err := json.Unmarshal([]byte(row), &got); err != nil || got.Duration != "5.079s" ||
		got.Limits.Delay != "1m30s" || got.Lines != 3 || got.Time.IsZero() {
		t.Errorf("json: got %s, %v", row, err)
	}
}
