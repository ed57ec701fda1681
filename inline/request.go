package inline

import (
	"net/http"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/scheduler/flows"
)

// Values of service_tier.
const (
	tierAuto     = "auto"
	tierDefault  = "default"
	tierFlex     = "flex"
	tierPriority = "priority"
)

// deadlineHeader says until when a flex request may wait.
const deadlineHeader = "X-Tidefill-Deadline"

// resolve finds what a request asks for: its use case, class, target and deadline.
func (x *exchange) resolve() *failure {
	s := x.body.scan
	useCase, ok := x.proxy.deps.UseCases.Find(x.tenant, s.model)
	if !ok {
		return unknownModel(s.model)
	}
	x.useCase = useCase
	class, f := x.config.classOf(useCase, s.tier)
	if f != nil {
		return f
	}
	class = x.objectiveClass(class)
	objective := useCase.Objective
	if x.config.Index(class) > x.config.Index(useCase.Class) {
		objective = 0 // a request that asks for less is promised nothing
	}
	deadline, f := x.config.deadline(x.in.Header.Get(deadlineHeader), s.tier, time.Now())
	if f != nil {
		return f
	}
	prompt := x.body.prompt()
	r := plan.Request{
		Flow: flows.Flow{Class: class, UseCase: useCase.Name, Tenant: x.tenant,
			Weight: useCase.Weight},
		Pools:        useCase.Pools,
		PromptTokens: x.body.promptTokens(), MaxTokens: s.maxTokens,
		Prefix:    prefixes(x.tenant, prompt),
		Streamed:  s.stream,
		Objective: objective, Deadline: deadline,
	}
	r.Model = x.proxy.draws.target(useCase, stickyKey(useCase.Sticky, x.in.Header, x.tenant,
		prompt, r.Prefix))
	x.request = r
	return nil
}

// classOf returns the class of a request.
func (c *Config) classOf(u UseCase, tier string) (string, *failure) {
	last := c.Classes[len(c.Classes)-1].Name
	own := u.Class
	switch {
	case u.Implicit:
		own = last
	case own == "":
		own = flows.Standard
	}
	if !c.Lists(own) {
		own = last
	}
	switch tier {
	case "", tierAuto, tierDefault:
		return own, nil
	case tierFlex:
		if c.Lists(flows.Flex) {
			return flows.Flex, nil
		}
		return last, nil
	case tierPriority:
		if u.Critical && c.Lists(flows.Critical) {
			return flows.Critical, nil
		}
		return own, nil
	}
	f := badBody("member", "service_tier", "Invalid 'service_tier': expected auto, default, flex "+
		"or priority.")
	f.code = "invalid_value"
	return "", f
}

// deadline returns when a flex request must have started. Zero: as its class says.
func (c *Config) deadline(header, tier string, now time.Time) (time.Time, *failure) {
	if header == "" || tier != tierFlex {
		return time.Time{}, nil
	}
	wait, err := time.ParseDuration(header)
	if err != nil {
		at, err := time.Parse(time.RFC3339, header)
		if err != nil {
			at, err = http.ParseTime(header)
		}
		if err != nil {
			return time.Time{}, badBody("deadline", "", "Invalid header %s: write a duration such "+
				"as 5m, or a time in RFC 3339.", deadlineHeader)
		}
		wait = at.Sub(now)
	}
	if wait < 0 || wait > c.MaxDeadline {
		return time.Time{}, badBody("deadline", "", "Invalid header %s: it must be between now "+
			"and %v from now.", deadlineHeader, c.MaxDeadline)
	}
	return now.Add(wait), nil
}

// stickyKey returns the key of requests that get the same target; 0: there is none.
func stickyKey(
	by Sticky, h http.Header, tenant string, prompt []byte, prefix []uint64,
) uint64 {
	if by.Header != "" {
		if value := h.Get(by.Header); value != "" {
			return hash(hash(seed, []byte(tenant)), []byte(value)) | 1
		}
	}
	switch {
	case !by.Prefix || len(prompt) == 0:
		return 0
	case len(prefix) > 0:
		return prefix[0] | 1
	}
	return hash(hash(seed, []byte(tenant)), prompt) | 1
}

// objectiveClass returns the class of the InferenceObjective that the request names; without one
// that given. Nobody raises the class of a use case that has no objective of its own.
func (x *exchange) objectiveClass(own string) string {
	for _, name := range registry.ObjectiveHeaders {
		value := x.in.Header.Get(name)
		if value == "" {
			continue
		}
		class, found := x.proxy.deps.UseCases.Objective(value)
		raises := x.config.Index(class) < x.config.Index(own)
		if !found || !x.config.Lists(class) || raises && !x.useCase.Critical {
			return own
		}
		return class
	}
	return own
}
