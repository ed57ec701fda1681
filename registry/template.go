package registry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/internal/faults"
)

// Template says how a model is deployed: with which engine, on which hardware, with which settings.
// Users of batches name one.
type Template struct {
	// Name is what users write: 1 to 128 characters.
	Name string `yaml:"name"`
	// Version distinguishes the templates of a name: 1 to 128 characters. Default: v1.0.0.
	Version string `yaml:"version"`
	// Status is active, deprecated or draft. A name without a version is that of its only active
	// template. A deprecated one takes no new batches, a draft those of admins. Default: active.
	Status Status `yaml:"status"`
	// Description is for users.
	Description string `yaml:"description"`
	// VisibleTo lists the tenants that see and may name the template. Empty: all.
	VisibleTo []string `yaml:"visible_to"`
	// Spec is the deployment.
	Spec TemplateSpec `yaml:"spec"`
}

// TemplateSpec is a deployment of a model.
type TemplateSpec struct {
	Engine             Engine         `yaml:"engine"`
	ModelSource        ModelSource    `yaml:"model_source"`
	Accelerator        Accelerator    `yaml:"accelerator"`
	Parallelism        Parallelism    `yaml:"parallelism"`
	EngineArgs         EngineArgs     `yaml:"engine_args"`
	Overrides          OverrideRules  `yaml:"overrides_allowed"`
	Quantization       Quantization   `yaml:"quantization"`
	ProviderConfig     ProviderConfig `yaml:"provider_config"`
	SupportedEndpoints []string       `yaml:"supported_endpoints"`
	// DeploymentMode is dedicated (replicas of the template's own), shared (the pool that serves
	// the model) or external (a server elsewhere). Default: dedicated.
	DeploymentMode Mode `yaml:"deployment_mode"`
	// ServiceID is accepted for documents of AIBrix, and has no effect.
	ServiceID string `yaml:"service_id"`
}

// Engine is the software that serves the model.
type Engine struct {
	Type    string `yaml:"type"`
	Version string `yaml:"version"`
	Image   string `yaml:"image"`
	// Invocation is http_server, the only one there is.
	Invocation string `yaml:"invocation"`
	// ServeArgs are appended to the arguments, so that they win.
	ServeArgs []string `yaml:"serve_args"`
	// HealthEndpoint is the path that answers 200 when the engine is ready. Default: /health.
	HealthEndpoint string `yaml:"health_endpoint"`
	// ReadyTimeoutSeconds limits a start, at least 10. Default: 600.
	ReadyTimeoutSeconds int `yaml:"ready_timeout_seconds"`
	// MetricsEndpoint is the path of the metrics page. Empty: /metrics.
	MetricsEndpoint string `yaml:"metrics_endpoint"`
}

// ModelSource says where the weights are.
type ModelSource struct {
	Type string `yaml:"type"`
	URI  string `yaml:"uri"`
	// Revision is a branch, a tag or a commit, of huggingface only.
	Revision         string `yaml:"revision"`
	TokenizerPath    string `yaml:"tokenizer_path"`
	ChatTemplatePath string `yaml:"chat_template_path"`
	// AuthSecretRef names the Secret with the key token.
	AuthSecretRef string `yaml:"auth_secret_ref"`
}

// Accelerator is the hardware of a replica.
type Accelerator struct {
	// Type is any name of a GPU, or cpu for none.
	Type         string `yaml:"type"`
	Count        int    `yaml:"count"`
	Interconnect string `yaml:"interconnect"`
	VRAMGB       *int   `yaml:"vram_gb"`
	SKUHint      string `yaml:"sku_hint"`
}

// Parallelism spreads the model over the accelerators. Each is 1 by default.
type Parallelism struct {
	TP int `yaml:"tp"`
	PP int `yaml:"pp"`
	DP int `yaml:"dp"`
	EP int `yaml:"ep"`
	SP int `yaml:"sp"`
	CP int `yaml:"cp"`
	// ExpertsShareRanks says that expert parallelism uses the ranks of the others, as vLLM does, so
	// that ep does not multiply the accelerators. Default: false.
	ExpertsShareRanks bool `yaml:"experts_share_ranks"`
}

// EngineArgs are settings of the engine. Nil: the engine's default.
type EngineArgs struct {
	MaxNumBatchedTokens  *int     `yaml:"max_num_batched_tokens"`
	MaxNumSeqs           *int     `yaml:"max_num_seqs"`
	MaxModelLen          *int     `yaml:"max_model_len"`
	BlockSize            *int     `yaml:"block_size"`
	GPUMemoryUtilization *float64 `yaml:"gpu_memory_utilization"`
	SwapSpace            *int     `yaml:"swap_space"`
	EnablePrefixCaching  *bool    `yaml:"enable_prefix_caching"`
	EnableChunkedPrefill *bool    `yaml:"enable_chunked_prefill"`
	SpeculativeModel     *string  `yaml:"speculative_model"`
	NumSpeculativeTokens *int     `yaml:"num_speculative_tokens"`
	// Extra are passed through to the engine.
	Extra map[string]any `yaml:",inline"`
}

// OverrideRules say which engine arguments users may set beside the typed ones, and within which
// bounds.
type OverrideRules struct {
	// EngineArgs has the bounds of each argument that users may set. Nil: every typed one, without
	// bounds. Empty: none.
	EngineArgs map[string]Bounds `yaml:"engine_args"`
}

// Bounds of a number. Nil: there is none.
type Bounds struct {
	Min *float64 `yaml:"min"`
	Max *float64 `yaml:"max"`
}

// Quantization of weights and of the KV cache. Empty: none.
type Quantization struct {
	Weight             string `yaml:"weight"`
	KVCache            string `yaml:"kv_cache"`
	WeightsArtifactURI string `yaml:"weights_artifact_uri"`
}

// ProviderConfig says where replicas run.
type ProviderConfig struct {
	Type string `yaml:"type"`
	// Extra are settings of the provider. Those of external are base_url, api_key_env,
	// api_key_file, requests_per_minute and tokens_per_minute.
	Extra map[string]any `yaml:",inline"`
}

// Status of a template.
type Status string

// The statuses.
const (
	Active     Status = "active"
	Deprecated Status = "deprecated"
	Draft      Status = "draft"
)

// Mode says whose replicas serve the lines of a template.
type Mode string

// The modes.
const (
	Dedicated Mode = "dedicated"
	Shared    Mode = "shared"
	External  Mode = "external"
)

// Values of enumerations, in the order in which messages list them.
var (
	engineTypes   = []string{"vllm", "sglang", "trtllm", "lmdeploy", "mock", "vipe"}
	sourceTypes   = []string{"huggingface", "s3", "local", "registry", "tos", "hdfs"}
	interconnects = []string{"nvlink", "pcie", "ib"}
	weights       = []string{"fp8", "awq", "gptq", "int8", "bf16", "fp16"}
	kvCaches      = []string{"auto", "fp8", "fp8_e4m3", "fp8_e5m2", "int8"}
	providers     = []string{"k8s", "runpod", "lambda_labs", "ec2", "gcp", "external"}
	statuses      = []string{string(Active), string(Deprecated), string(Draft)}
	modes         = []string{string(Dedicated), string(Shared), string(External)}
	// Endpoints lists those that a template may support.
	Endpoints = []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/rerank"}
)

const (
	defaultVersion = "v1.0.0"
	maxName        = 128
	// maxExtras limits the arguments that are passed through, and the text of each.
	maxExtras, maxExtra = 200, 4 << 10
)

// Key returns the name and the version, which no other template has.
func (t Template) Key() Key { return Key{t.Name, cmp.Or(t.Version, defaultVersion)} }

// WithDefaults returns the template with what it leaves out.
func (t Template) WithDefaults() Template {
	fill := func(s *string, value string) { *s = cmp.Or(*s, value) }
	fill(&t.Version, defaultVersion)
	t.Status = cmp.Or(t.Status, Active)
	s := &t.Spec
	s.DeploymentMode = cmp.Or(s.DeploymentMode, Dedicated)
	fill(&s.Engine.Invocation, "http_server")
	fill(&s.Engine.HealthEndpoint, "/health")
	s.Engine.ReadyTimeoutSeconds = cmp.Or(s.Engine.ReadyTimeoutSeconds, 600)
	p := &s.Parallelism
	for _, n := range []*int{&p.TP, &p.PP, &p.DP, &p.EP, &p.SP, &p.CP} {
		*n = cmp.Or(*n, 1)
	}
	return t
}

// Validate returns every fault of a template with its defaults.
func (t Template) Validate() faults.List {
	var f faults.List
	validName(&f, "name", t.Name)
	validName(&f, "version", t.Version)
	oneOf(&f, "status", string(t.Status), statuses)
	visibleTo(&f, t.VisibleTo)
	t.Spec.validate(&f)
	return f
}

func (s *TemplateSpec) validate(f *faults.List) {
	s.Engine.validate(f)
	oneOf(f, "spec.model_source.type", s.ModelSource.Type, sourceTypes)
	required(f, "spec.model_source.uri", s.ModelSource.URI)
	if s.ModelSource.Revision != "" && s.ModelSource.Type != "huggingface" {
		f.Add("spec.model_source.revision", "is set, but the type is %q; only huggingface has "+
			"revisions", s.ModelSource.Type)
	}
	required(f, "spec.accelerator.type", s.Accelerator.Type)
	f.AtLeast("spec.accelerator.count", s.Accelerator.Count, 1)
	optional(f, "spec.accelerator.interconnect", s.Accelerator.Interconnect, interconnects)
	if gb := s.Accelerator.VRAMGB; gb != nil {
		f.AtLeast("spec.accelerator.vram_gb", *gb, 1)
	}
	s.validateParallelism(f)
	f.AddAll("spec.engine_args", joined(s.EngineArgs.Validate()))
	s.validateOverrides(f)
	optional(f, "spec.quantization.weight", s.Quantization.Weight, weights)
	optional(f, "spec.quantization.kv_cache", s.Quantization.KVCache, kvCaches)
	oneOf(f, "spec.deployment_mode", string(s.DeploymentMode), modes)
	s.validateProvider(f)
	if len(s.SupportedEndpoints) == 0 {
		f.Add("spec.supported_endpoints", "is empty, must list one or more of %s",
			strings.Join(Endpoints, ", "))
	}
	for i, endpoint := range s.SupportedEndpoints {
		oneOf(f, fmt.Sprintf("spec.supported_endpoints[%d]", i), endpoint, Endpoints)
	}
}

func (e *Engine) validate(f *faults.List) {
	oneOf(f, "spec.engine.type", e.Type, engineTypes)
	required(f, "spec.engine.version", e.Version)
	required(f, "spec.engine.image", e.Image)
	oneOf(f, "spec.engine.invocation", e.Invocation, []string{"http_server"})
	f.AtLeast("spec.engine.ready_timeout_seconds", e.ReadyTimeoutSeconds, 10)
	for _, path := range []struct{ name, value string }{
		{"health_endpoint", e.HealthEndpoint}, {"metrics_endpoint", e.MetricsEndpoint},
	} {
		if path.value != "" && !strings.HasPrefix(path.value, "/") {
			f.Add("spec.engine."+path.name, "is %q, must be a path that begins with /", path.value)
		}
	}
}

func (s *TemplateSpec) validateParallelism(f *faults.List) {
	p := s.Parallelism
	product := 1
	for _, of := range []struct {
		name    string
		n       int
		devices bool
	}{{"tp", p.TP, true}, {"pp", p.PP, true}, {"dp", p.DP, true},
		{"ep", p.EP, !p.ExpertsShareRanks}, {"sp", p.SP, false}, {"cp", p.CP, false}} {
		f.AtLeast("spec.parallelism."+of.name, of.n, 1)
		if of.devices {
			product *= min(max(of.n, 1), 1<<10)
		}
	}
	if s.Accelerator.Count >= 1 && product != s.Accelerator.Count {
		rule := "tp*pp*dp*ep"
		if p.ExpertsShareRanks {
			rule = "tp*pp*dp"
		}
		f.Add("spec.parallelism", "%s is %d, must be equal to accelerator.count, which is %d; "+
			"where experts use the ranks of the others, set experts_share_ranks", rule, product,
			s.Accelerator.Count)
	}
}

// Validate returns the faults of the arguments, their paths without the section's.
func (a *EngineArgs) Validate() (f faults.List) {
	atLeast := func(path string, n *int, least int) {
		if n != nil {
			f.AtLeast(path, *n, least)
		}
	}
	atLeast("max_num_batched_tokens", a.MaxNumBatchedTokens, 1)
	atLeast("max_num_seqs", a.MaxNumSeqs, 1)
	atLeast("max_model_len", a.MaxModelLen, 1)
	atLeast("block_size", a.BlockSize, 1)
	atLeast("swap_space", a.SwapSpace, 0)
	atLeast("num_speculative_tokens", a.NumSpeculativeTokens, 0)
	if share := a.GPUMemoryUtilization; share != nil && !(*share > 0 && *share <= 1) {
		f.Add("gpu_memory_utilization", "is %v, must be above 0 and at most 1", *share)
	}
	if len(a.Extra) > maxExtras {
		f.Add("", "has %d arguments beside the known ones, at most %d are taken", len(a.Extra),
			maxExtras)
		return f
	}
	for _, name := range slices.Sorted(maps.Keys(a.Extra)) {
		if size := len(fmt.Sprint(a.Extra[name])); size > maxExtra {
			f.Add(name, "has %d bytes, at most %d are taken", size, maxExtra)
			continue
		}
		finite(&f, name, a.Extra[name])
	}
	return f
}

func (s *TemplateSpec) validateOverrides(f *faults.List) {
	for _, name := range slices.Sorted(maps.Keys(s.Overrides.EngineArgs)) {
		path, bounds := "spec.overrides_allowed.engine_args."+name, s.Overrides.EngineArgs[name]
		if reason := forbidden(name); reason != "" {
			f.Add(path, "can't be allowed: %s", reason)
		}
		bounds.validate(f, path)
	}
}

func (b Bounds) validate(f *faults.List, path string) {
	if b.Min != nil {
		finite(f, path+".min", *b.Min)
	}
	if b.Max != nil {
		finite(f, path+".max", *b.Max)
	}
	if b.Min != nil && b.Max != nil && *b.Min > *b.Max {
		f.Add(path, "min is %v and max %v; min must be at most max", *b.Min, *b.Max)
	}
}

func (s *TemplateSpec) validateProvider(f *faults.List) {
	const path = "spec.provider_config"
	p := s.ProviderConfig
	optional(f, path+".type", p.Type, providers) // documents of later AIBrix have no provider
	finite(f, path, p.Extra)
	switch {
	case s.DeploymentMode != External:
	case p.Type != "external":
		f.Add(path+".type", "is %q; deployment_mode external needs external", p.Type)
	default:
		_, err := p.External()
		f.AddAll(path, err)
	}
}
