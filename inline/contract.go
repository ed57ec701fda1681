package inline

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// Admission finds places for requests. It is called concurrently.
type Admission interface {
	// Admit waits until the request may start. It sets the request's ID. The error is a *Refused,
	// or the context's.
	Admit(ctx context.Context, r plan.Request) (Place, error)
}

// Place is the place of an admitted request on a runner. One goroutine uses it, but Done may be
// called from another one after all other calls.
type Place interface {
	// Admission says where the place is, and what the request waited for.
	Admission() plan.Admission
	// Base is the URL of the runner's server without /v1, such as http://10.0.0.7:8000.
	Base() *url.URL
	// Header holds what the operator configured for the server: credentials and others. They
	// replace those of the client. The caller does not change it.
	Header() http.Header
	// Spoke reports the first token.
	Spoke()
	// Decoded reports what a read of a stream has brought; see plan.RequestsDecoded. It is called
	// for each read, and must not block.
	Decoded(tokens, gaps int, time time.Duration)
	// Done ends the place. The ID of the report is filled in by the implementation. It is called
	// exactly once.
	Done(plan.RequestEnded)
}

// Refused is the error of a request that gets no place.
type Refused struct{ plan.Refusal }

// Elsewhere is the error of a request for which another process finds the place, at URL. The whole
// request goes there as it came.
type Elsewhere struct{ URL *url.URL }

// Error names the process.
func (e *Elsewhere) Error() string { return "another process plans the pool: " + e.URL.Host }

// Error names the reason.
func (r *Refused) Error() string { return "no place: " + string(r.Why) }

// UseCases resolves the models that users send. It is called concurrently, for each request.
type UseCases interface {
	// Find returns the use case of a model name for a tenant. Without one, it returns an implicit
	// use case if a pool takes such models, and otherwise false.
	Find(tenant, model string) (UseCase, bool)
	// Objective returns the class of an InferenceObjective, which requests name in a header.
	Objective(name string) (class string, found bool)
	// Names returns the names of the use cases that a tenant may use.
	Names(tenant string) []string
}

// UseCase is what a model name means.
type UseCase struct {
	// Name is the model that users send.
	Name string
	// Key is unique among use cases, of which two may have one name in different pools. Empty:
	// Name.
	Key string
	// Implicit marks a model that is no use case of anybody. It has the last class.
	Implicit bool
	// Class of its requests. Empty: standard.
	Class string
	// Objective is the longest average time per output token that it promises. 0: none.
	Objective time.Duration
	// Weight among the use cases of its class. 0: 1.
	Weight float64
	// Targets are the models that runners are asked for. Empty: Name.
	Targets []Target
	// Pools are the names of the pools that serve it. Nil: all that serve the target and are not
	// reserved.
	Pools []string
	// Sticky sets which requests get the same target.
	Sticky Sticky
	// Critical allows requests with service_tier priority to have the class critical.
	Critical bool
}

// Target is a model of a use case with its share.
type Target struct {
	Model string
	// Weight is relative to the other targets; not negative. At least one is above 0.
	Weight float64
}

// Sticky sets which requests get the same target, so that caches and users keep it. The zero value
// draws one for each request.
type Sticky struct {
	// Prefix keeps requests together whose prompts begin with the same 1,024 bytes.
	Prefix bool
	// Header keeps requests together with the same value of this header. It comes before Prefix.
	Header string
}
