package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
)

// A batch with a check, as a user of the Go SDK has it. The daemon is killed while a line is asked
// for again.
func TestAnswersAreCheckedAndAskedForAgain(t *testing.T) {
	t.Parallel()
	d, stub := newServed(t)
	c := sdk(d, ownKey)
	ctx := t.Context()
	var again atomic.Int64
	var killed atomic.Bool
	stub.Intercept(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		text := "Sure, I can help."
		if strings.Contains(string(body), "Your answer was not accepted. json_schema: ") {
			if again.Add(1); !killed.Load() {
				<-r.Context().Done()
				return true
			}
			if !strings.Contains(string(body), "checked-7 ") {
				text = `{"ok":true}`
			}
		}
		fmt.Fprintf(w, `{"object":"chat.completion","model":"m","choices":[{"index":0,"message":`+
			`{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":`+
			`{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`, text)
		return true
	})

	lines := NewLines("checked", "m", 20)
	params := newBatch(uploadSDK(t, c, lines.Content).ID)
	check := map[string]any{"finish_reason": []string{"stop"}, "json_schema": map[string]any{
		"type": "object", "required": 7}}
	params.SetExtraFields(map[string]any{"tidefill": map[string]any{"check": check}})
	_, err := c.Batches.New(ctx, params)
	wantError(t, err, 400, "invalid_value", "tidefill.check.json_schema")
	check["json_schema"] = map[string]any{"type": "object", "required": []string{"ok"}}
	params.SetExtraFields(map[string]any{"tidefill": map[string]any{"check": check}})
	created, err := c.Batches.New(ctx, params)
	if err != nil {
		t.Fatal(err, reason(err))
	}
	awaitThat(t, 20*time.Second, "a line that is asked for again", func() bool {
		return again.Load() > 0
	})
	killed.Store(true)
	d.Kill()
	d.Start()
	d.AwaitReady()

	b := awaitSDK(t, c, created.ID)
	if b.Status != openai.BatchStatusCompleted || b.RequestCounts.Completed != 19 ||
		b.RequestCounts.Failed != 1 || b.Usage.TotalTokens != 20*2*5 {
		t.Errorf("ended as %s", b.RawJSON())
	}
	response, err := c.Files.Content(ctx, b.ErrorFileID)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var failed Result
	if err := json.Unmarshal(bytes.TrimSpace(content), &failed); err != nil {
		t.Fatalf("the error file is %s: %v", content, err)
	}
	if failed.CustomID != "checked-7" || failed.Error == nil ||
		failed.Error.Code != "check_failed" ||
		!strings.HasPrefix(failed.Error.Message, "json_schema: ") || failed.Response == nil ||
		!strings.Contains(string(failed.Response.Body), "Sure, I can help.") {
		t.Errorf("the error file is %s", content)
	}
	for _, answer := range []string{"Sure, I can", "checked-7 "} {
		if strings.Contains(d.Log(), answer) {
			t.Errorf("the log has %q", answer)
		}
	}
	d.Verify(t, b.ID)
}
