package runner

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The examples of the Model Runner API, which must survive our types unchanged.
func TestTypesKeepTheExamples(t *testing.T) {
	for _, test := range []struct {
		into    any
		example string
	}{
		{&Capabilities{}, `{
			"runnerType": "vllm-0.6.0", "runnerId": "safebox-model-llm-1",
			"models": {
				"loaded": [{"id": "meta-llama/Llama-3.1-70B-Instruct", "quantization": "awq-4bit", "contextLength": 32768, "loadedAt": 1745880000, "gpuMemoryMB": 24000}],
				"loading": [{"id": "mistralai/Mistral-7B-Instruct-v0.3", "progress": 0.45, "eta": 180}],
				"available": ["meta-llama/Llama-3.1-8B-Instruct", "deepseek-ai/deepseek-r1-distill-llama-70b"]
			},
			"resources": {
				"gpuIds": [0], "gpuMemoryTotalMB": 81920, "gpuMemoryUsedMB": 58000, "gpuMemoryFreeMB": 23920,
				"gpuUtilization": 0.67, "kvCacheSizeMB": 12000, "kvCacheUtilization": 0.45
			},
			"queue": {"depth": 3, "maxDepth": 16, "avgWaitMs": 150, "p95WaitMs": 450},
			"capabilities": {
				"streaming": true, "prefixCaching": true, "multiTenant": true,
				"visionInput": false, "audioInput": false, "functionCalling": true
			},
			"health": "healthy"
		}`},
		{
			&HealthStatus{}, `{"status": "healthy", "uptime": 86400, "modelsLoaded": 2, "queueDepth": 3}`},
		{&LoadRequest{}, `{
			"modelId": "meta-llama/Llama-3.1-70B-Instruct", "quantization": "awq-4bit", "maxContextLength": 32768,
			"gpuMemoryBudgetMB": 40000, "evictModel": "meta-llama/Llama-3.1-8B-Instruct", "verifiedOpToken": "eyJ..."
		}`},
		{
			&LoadTask{}, `{"taskId": "load-abc123", "status": "loading", "progress": 0.0, "eta": 300}`},
		{&LoadTask{}, `{
			"taskId": "load-abc123", "status": "completed", "modelId": "meta-llama/Llama-3.1-70B-Instruct",
			"gpuMemoryUsedMB": 38500, "loadTimeMs": 287000
		}`},
		{
			&UnloadRequest{}, `{"modelId": "meta-llama/Llama-3.1-8B-Instruct", "verifiedOpToken": "eyJ..."}`},
		{
			&Unloaded{}, `{"modelId": "meta-llama/Llama-3.1-8B-Instruct", "gpuMemoryFreedMB": 8200, "kvCacheFlushed": true}`},
		{
			&FlushRequest{}, `{"scope": "tenant", "tenantId": "community-x", "verifiedOpToken": "eyJ..."}`},
		{&Flushed{}, `{"flushed": true, "entriesRemoved": 1234, "memoryFreedMB": 3500}`},
		{&ErrorBody{}, `{"error": {
			"code": "queue_full", "message": "Queue depth 16/16, retry in 5 seconds", "type": "server_error", "param": null,
			"queueDepth": 16, "avgWaitMs": 2000
		}}`},
		{&ErrorBody{}, `{"error": {
			"code": "rate_limit_exceeded", "message": "Tenant community-x exceeded 100 req/min", "type": "rate_limit_error", "param": null,
			"limit": 100, "remaining": 0, "resetAt": 1745880060
		}}`},
	} {
		d := json.NewDecoder(strings.NewReader(test.example))
		d.DisallowUnknownFields()
		if err := d.Decode(test.into); err != nil {
			t.Errorf("%T: %v", test.into, err)
			continue
		}
		encoded, err := json.Marshal(test.into)
		if err != nil {
			t.Fatal(err)
		}
		var got, want map[string]any
		if err := json.Unmarshal(encoded, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(test.example), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T (-example +ours):\n%s", test.into, diff)
		}
	}
}
