package apptest

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/runner/emulator"
)

// StartEngine serves an emulated runner with its metrics and its users, in real time, until the
// test ends.
func StartEngine(t *testing.T, c emulator.Config) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- emulator.Serve(ctx, c, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

// Submit creates a batch of n lines with answers of 30 tokens. The client is closed when the test
// ends.
func Submit(t *testing.T, daemon *app.App, n int) (*client.Client, client.Batch) {
	t.Helper()
	c, err := client.New(daemon.URL(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	lines := strings.ReplaceAll(BatchFile(n), `"max_tokens":3`, `"max_tokens":30`)
	file, err := c.Upload(t.Context(), "lines.jsonl", strings.NewReader(lines), int64(len(lines)))
	if err != nil {
		t.Fatal(err)
	}
	batch, err := c.CreateBatch(t.Context(), client.BatchRequest{InputFileID: file.ID,
		Endpoint: "/v1/chat/completions", CompletionWindow: "24h"})
	if err != nil {
		t.Fatal(err)
	}
	return c, batch
}
