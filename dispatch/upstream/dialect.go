package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Dialect says what an upstream understands beyond the OpenAI API. All of it is off by default,
// because a server that does not know a header or a member may refuse it.
type Dialect struct {
	// EnginePriority adds the member priority to the bodies of chat completions, completions and
	// responses that have none, so that the engine admits interactive requests first: vllm (lower
	// first, with --scheduling-policy priority), sglang (higher first, with
	// --enable-priority-scheduling) or sglang-low-first (with --schedule-low-priority-values-first
	// too). Versions of SGLang take requests without a priority last: with it, give interactive
	// requests one too, or set --default-priority-value 0. Default: none, bodies stay as users
	// wrote them.
	EnginePriority EnginePriority `yaml:"engine_priority"`
	// CacheHeaders sends X-Cache-Mode: prefix, and as X-Cache-Tag a tag that a tenant's lines with
	// the same beginning of the prompt share (Model Runner API). Default: false.
	CacheHeaders bool `yaml:"cache_headers"`
	// Objective names the InferenceObjective of batch lines for llm-d's endpoint picker, which
	// takes their priority from it. It is sent under the present and the former name of the header.
	// Empty: none is sent.
	Objective string `yaml:"objective"`
	// Fairness sends a fairness id to llm-d's endpoint picker, under the present and the former
	// name of the header: tenant, the name of a line's tenant. Empty: none is sent.
	Fairness string `yaml:"fairness"`
}

// EnginePriority names the engine whose member priority is sent, which differ in what comes first.
type EnginePriority string

// The engine priorities.
const (
	NoEnginePriority       EnginePriority = ""
	VLLMPriority           EnginePriority = "vllm"
	SGLangPriority         EnginePriority = "sglang"
	SGLangLowFirstPriority EnginePriority = "sglang-low-first"
)

// lowPriority is the distance of batch lines from requests of priority 0: more than SGLang's
// default threshold for preemption, 10.
const lowPriority = 100

// FairnessTenant is the value of Dialect.Fairness that sends tenants.
const FairnessTenant = "tenant"

// Headers of llm-d's endpoint picker, by their present and their former names.
var (
	objectiveHeaders = []string{"X-Llm-D-Inference-Objective", "X-Gateway-Inference-Objective"}
	fairnessHeaders  = []string{"X-Llm-D-Inference-Fairness-Id",
		"X-Gateway-Inference-Fairness-Id"}
)

// value returns the member's value for batch lines; nil: none is sent.
func (p EnginePriority) value() json.RawMessage {
	switch p {
	case VLLMPriority, SGLangLowFirstPriority:
		return json.RawMessage(fmt.Sprint(lowPriority))
	case SGLangPriority:
		return json.RawMessage(fmt.Sprint(-lowPriority))
	default:
		return nil
	}
}

// Validate reports every value that is not known.
func (d Dialect) Validate() error {
	var faults []error
	if d.EnginePriority != NoEnginePriority && d.EnginePriority.value() == nil {
		faults = append(faults, fmt.Errorf("tuning.engine_priority: is %q, want vllm, sglang or "+
			"sglang-low-first", d.EnginePriority))
	}
	if d.Fairness != "" && d.Fairness != FairnessTenant {
		faults = append(faults, fmt.Errorf("tuning.fairness: is %q, want tenant; send a fixed "+
			"fairness id by headers", d.Fairness))
	}
	if hasControl(d.Objective) {
		faults = append(faults, errors.New(
			"tuning.objective: contains a control character, such as a newline"))
	}
	return errors.Join(faults...)
}

// addTo adds the headers that are the same in all requests.
func (d Dialect) addTo(header http.Header) {
	if d.CacheHeaders {
		header.Set("X-Cache-Mode", "prefix")
	}
	if d.Objective != "" {
		for _, name := range objectiveHeaders {
			header.Set(name, d.Objective)
		}
	}
}

// tenantHeaders lists the headers that carry the name of a line's tenant.
func (u Upstream) tenantHeaders() (names []string) {
	if u.TenantHeader != "" {
		names = append(names, u.TenantHeader)
	}
	if u.Dialect.Fairness == FairnessTenant {
		names = append(names, fairnessHeaders...)
	}
	return names
}

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\t' || r == 0x7F
	})
}
