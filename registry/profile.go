package registry

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/internal/faults"
	"github.com/tidefill/tidefill/internal/strictyaml"
)

// Profile says how batches are stored, scheduled and limited. Users of batches name one.
type Profile struct {
	// Name is what users write: 1 to 128 characters. Profiles have no versions.
	Name string `yaml:"name"`
	// Description is for users.
	Description string `yaml:"description"`
	// VisibleTo lists the tenants that see and may name the profile. Empty: all.
	VisibleTo []string    `yaml:"visible_to"`
	Spec      ProfileSpec `yaml:"spec"`
}

// ProfileSpec has the parts of a profile.
type ProfileSpec struct {
	Storage    Storage    `yaml:"storage"`
	Scheduling Scheduling `yaml:"scheduling"`
	Quota      Quota      `yaml:"quota"`
	// ServiceTierAlias is the service_tier of a create call that selects the profile. Empty: none.
	ServiceTierAlias string `yaml:"openai_service_tier_alias"`
	// Overrides say what users may set.
	Overrides ProfileOverrides `yaml:"overrides_allowed"`
}

// ProfileOverrides say which settings of a profile users may set, and within which bounds.
type ProfileOverrides struct {
	// Scheduling has the bounds of each key. Nil: every key, without bounds. Empty: none.
	Scheduling map[string]Bounds `yaml:"scheduling"`
}

// Storage is where result files go. An empty backend is that of the daemon.
type Storage struct {
	Backend string `yaml:"backend"`
	// Bucket is a directory where the backend is local.
	Bucket string `yaml:"bucket"`
	Region string `yaml:"region"`
	// CredentialsSecretRef names a Secret, or a directory of files with its keys.
	CredentialsSecretRef string `yaml:"credentials_secret_ref"`
	EndpointURL          string `yaml:"endpoint_url"`
}

// Scheduling says when the lines of a batch run.
type Scheduling struct {
	// CompletionWindow is the longest that a batch may ask for: 1h, 4h, 24h or best_effort.
	// Default: 24h.
	CompletionWindow string `yaml:"completion_window"`
	// Priority is high, normal or low. Default: normal.
	Priority string `yaml:"priority"`
	// ProviderPreference lists the providers of pools, the first choice first. Empty: any.
	ProviderPreference []string `yaml:"provider_preference"`
	// AllowPreempt lets lines be evicted for those of other batches.
	AllowPreempt bool `yaml:"allow_preempt"`
	// AllowSpot lets lines run on pools whose replicas the provider reclaims.
	AllowSpot bool `yaml:"allow_spot"`
	// MaxConcurrency limits the lines in flight. Default: 256.
	MaxConcurrency int `yaml:"max_concurrency"`
	// RequestTimeoutSeconds limits one request. Default: 600.
	RequestTimeoutSeconds int         `yaml:"request_timeout_seconds"`
	RetryPolicy           RetryPolicy `yaml:"retry_policy"`
}

// RetryPolicy says when a line is sent again.
type RetryPolicy struct {
	// MaxRetries is the number of attempts after the first one. Default: 2.
	MaxRetries *int `yaml:"max_retries"`
	// BackoffSeconds are the delays before the second attempt, the third, and so on; the last one
	// is repeated. Default: 5, 30.
	BackoffSeconds []int `yaml:"backoff_seconds"`
	// RetryableErrors lists HTTP statuses. Default: 429, 500, 502, 503, 504.
	RetryableErrors []int `yaml:"retryable_errors"`
}

// Quota limits a batch.
type Quota struct {
	// MaxRequestsPerBatch limits the lines. Default: 50000.
	MaxRequestsPerBatch int `yaml:"max_requests_per_batch"`
	// MaxInputSizeMB limits the input, in units of 1,000,000 bytes. Default: 200.
	MaxInputSizeMB int `yaml:"max_input_size_mb"`
	// MaxOutputSizeGB limits the results, in units of 1,000,000,000 bytes. Default: 10.
	MaxOutputSizeGB int `yaml:"max_output_size_gb"`
}

// BestEffort is the completion window of batches without a deadline.
const BestEffort = "best_effort"

var (
	backends     = []string{"s3", "minio", "gcs", "tos", "local"}
	windows      = []string{"1h", "4h", "24h", BestEffort}
	priorities   = []string{"high", "normal", "low"}
	serviceTiers = []string{"priority", "standard", "flex", "batch", "scale"}
)

// Limits of lists in profiles, of seconds, of attempts after the first, and of other numbers, whose
// products must not overflow.
const (
	maxProfileList = 100
	maxSeconds     = 30 * 24 * 3600
	maxRetries     = 99
	maxCount       = 1<<31 - 1
)

// Key returns the name, which no other profile has.
func (p Profile) Key() Key { return Key{Name: p.Name} }

// WithDefaults returns the profile with what it leaves out.
func (p Profile) WithDefaults() Profile {
	s, q := &p.Spec.Scheduling, &p.Spec.Quota
	s.CompletionWindow = cmp.Or(s.CompletionWindow, "24h")
	s.Priority = cmp.Or(s.Priority, "normal")
	s.MaxConcurrency = cmp.Or(s.MaxConcurrency, 256)
	s.RequestTimeoutSeconds = cmp.Or(s.RequestTimeoutSeconds, 600)
	r := &s.RetryPolicy
	if r.MaxRetries == nil {
		r.MaxRetries = new(2)
	}
	if len(r.BackoffSeconds) == 0 {
		r.BackoffSeconds = []int{5, 30}
	}
	if len(r.RetryableErrors) == 0 {
		r.RetryableErrors = []int{429, 500, 502, 503, 504}
	}
	q.MaxRequestsPerBatch = cmp.Or(q.MaxRequestsPerBatch, 50_000)
	q.MaxInputSizeMB = cmp.Or(q.MaxInputSizeMB, 200)
	q.MaxOutputSizeGB = cmp.Or(q.MaxOutputSizeGB, 10)
	return p
}

// Window returns the completion window; 0: none.
func (s Scheduling) Window() time.Duration {
	window, err := time.ParseDuration(s.CompletionWindow)
	if err != nil {
		return 0 // best_effort
	}
	return window
}

// Backoff returns the delay before an attempt; the second is the first with one.
func (r RetryPolicy) Backoff(attempt int) time.Duration {
	if len(r.BackoffSeconds) == 0 || attempt < 2 {
		return 0
	}
	at := min(attempt-2, len(r.BackoffSeconds)-1)
	return time.Duration(r.BackoffSeconds[at]) * time.Second
}

// Validate returns every fault of a profile with its defaults.
func (p Profile) Validate() faults.List {
	var f faults.List
	validName(&f, "name", p.Name)
	visibleTo(&f, p.VisibleTo)
	st := p.Spec.Storage
	if st != (Storage{}) {
		oneOf(&f, "spec.storage.backend", st.Backend, backends)
		required(&f, "spec.storage.bucket", st.Bucket)
		st.validate(&f)
	}
	f.AddAll("spec.scheduling", joined(p.Spec.Scheduling.Validate()))
	for name := range p.Spec.Overrides.Scheduling {
		if at := "spec.overrides_allowed.scheduling." + name; !slices.Contains(schedulingKeys,
			name) {
			f.Add(at, "unknown key; %s", strictyaml.Known(name, schedulingKeys))
		} else {
			p.Spec.Overrides.Scheduling[name].validate(&f, at)
		}
	}
	q := p.Spec.Quota
	within(&f, "spec.quota.max_requests_per_batch", q.MaxRequestsPerBatch, 1, maxCount)
	within(&f, "spec.quota.max_input_size_mb", q.MaxInputSizeMB, 1, maxCount)
	within(&f, "spec.quota.max_output_size_gb", q.MaxOutputSizeGB, 1, maxCount)
	optional(&f, "spec.openai_service_tier_alias", p.Spec.ServiceTierAlias, serviceTiers)
	return f
}

// validate adds the faults with which a storage could not be opened, besides those of the backend
// and of an empty bucket.
func (s Storage) validate(f *faults.List) {
	if ref := s.CredentialsSecretRef; ref == "." || ref == ".." ||
		strings.ContainsAny(ref, `/\`) && !path.IsAbs(ref) {
		f.Add("spec.storage.credentials_secret_ref", "is %q, must be the name of a Secret, or the "+
			"absolute path of a directory with its keys", ref)
	}
}

// unusable returns why results can't be stored there; empty: they can, as far as the document says.
// Documents of AIBrix may be so, and are good for all but that.
func (s Storage) unusable() string {
	switch {
	case s.Backend == "local" && !path.IsAbs(s.Bucket):
		return "spec.storage.bucket: must be an absolute path, since the backend is local; " +
			"results can't be stored there"
	case s.Backend == "minio" && s.EndpointURL == "":
		return "spec.storage.endpoint_url: minio needs it; results can't be stored there"
	}
	return ""
}

// Validate returns the faults of the section, their paths without the section's.
func (s Scheduling) Validate() (f faults.List) {
	oneOf(&f, "completion_window", s.CompletionWindow, windows)
	oneOf(&f, "priority", s.Priority, priorities)
	within(&f, "max_concurrency", s.MaxConcurrency, 1, maxCount)
	within(&f, "request_timeout_seconds", s.RequestTimeoutSeconds, 1, maxSeconds)
	r := s.RetryPolicy
	if r.MaxRetries != nil {
		within(&f, "retry_policy.max_retries", *r.MaxRetries, 0, maxRetries)
	}
	for _, list := range []struct {
		path     string
		length   int
		min, max int
		values   []int
	}{
		{"retry_policy.backoff_seconds", len(r.BackoffSeconds), 0, maxSeconds, r.BackoffSeconds},
		{"retry_policy.retryable_errors", len(r.RetryableErrors), 400, 599, r.RetryableErrors},
	} {
		if list.length > maxProfileList {
			f.Add(list.path, "has %d values, at most %d are taken", list.length, maxProfileList)
			continue
		}
		for i, n := range list.values {
			if n < list.min || n > list.max {
				f.Add(fmt.Sprintf("%s[%d]", list.path, i), "is %d, must be from %d to %d", n,
					list.min, list.max)
			}
		}
	}
	if n := len(s.ProviderPreference); n > maxProfileList {
		f.Add("provider_preference", "has %d values, at most %d are taken", n, maxProfileList)
		return f
	}
	seen := map[string]bool{}
	for i, provider := range s.ProviderPreference {
		path := fmt.Sprintf("provider_preference[%d]", i)
		validName(&f, path, provider)
		if seen[provider] {
			f.Add(path, "is %q again; list a provider once", provider)
		}
		seen[provider] = true
	}
	return f
}
