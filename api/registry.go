package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/internal/faults"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
)

const (
	// referenceKey is the member of create requests that names a template and a profile, as in
	// AIBrix.
	referenceKey = "aibrix"
	// registryKey is the same in the `tidefill` object.
	registryKey = "registry"
)

// reference names a template and a profile.
type reference struct {
	path  string          // of the object in the request, with a final dot
	given json.RawMessage // nil: there is none

	template, version string // empty: none
	engineArgs        map[string]json.RawMessage
	profile           string // empty: the default one
	scheduling        map[string]json.RawMessage
}

// notOverridable are the parts of templates and profiles that users know from the documentation and
// can't set.
var notOverridable = map[string][]string{
	"engine_args": {"image", "engine", "accelerator", "parallelism", "model_source",
		"provider_config", "quantization", "supported_endpoints", "deployment_mode", "spec"},
	"scheduling": {"storage", "quota", "openai_service_tier_alias", "spec"},
}

// readReference reads the reference in a member; nil: there is none.
func readReference(o *jsonObject, key string) *reference {
	a, ok := o.object(key)
	if !ok {
		return nil
	}
	r := &reference{path: a.path, given: o.members[key]}
	for _, inline := range []string{"model_template_spec", "profile_spec"} {
		refuseInline(a, inline)
	}
	if t, ok := a.object("model_template"); ok {
		refuseInline(t, "spec")
		r.template = t.required("name")
		r.version, _ = t.text("version")
		r.engineArgs = readOverrides(t, "engine_args")
		_ = t.finish()
	}
	if p, ok := a.object("profile"); ok {
		refuseInline(p, "spec")
		r.profile = p.required("name")
		r.scheduling = readOverrides(p, "scheduling")
		_ = p.finish()
	}
	_ = a.finish()
	return r
}

// refuseInline reports a specification in a request.
func refuseInline(o *jsonObject, key string) {
	if o.has(key) {
		o.wrongValue(key, "a request can't bring a specification of its own; name one that an "+
			"administrator has registered.")
	}
}

// readOverrides reads the one section that overrides may have.
func readOverrides(o *jsonObject, section string) (args map[string]json.RawMessage) {
	overrides, ok := o.object("overrides")
	if !ok {
		return nil
	}
	for _, key := range notOverridable[section] {
		if _, has := overrides.members[key]; has {
			overrides.wrongValue(key, "it can't be overridden, only '%s' can; an administrator "+
				"can register another item.", section)
		}
	}
	if inside, ok := overrides.object(section); ok {
		inside.keys()
		args = inside.members
	}
	_ = overrides.finish()
	return args
}

// readReferences reads the reference of a create request, and its service tier.
func (d *draft) readReferences(o *jsonObject) {
	d.Tier, _ = o.text("service_tier")
	r := readReference(o, referenceKey)
	switch {
	case r != nil && d.Reference != nil:
		o.wrongValue(referenceKey, "'%s.%s' names a template or a profile as well; give one of "+
			"them.", extensionsKey, registryKey)
	case r != nil:
		d.Reference = r
	}
}

// resolve looks up what the names of a draft stand for, and applies it to the draft's options.
func (s *Server) resolve(ctx context.Context, d *draft) error {
	catalogs, err := s.catalogs()
	if err != nil {
		return err
	}
	viewer := s.viewer(ctx)
	r := cmp.Or(d.Reference, &reference{path: referenceKey + "."})
	resolved := store.Resolved{Request: r.given, Tier: d.Tier}
	if r.template != "" {
		if err := d.resolveTemplate(catalogs, viewer, r, &resolved); err != nil {
			return err
		}
	}
	if err := d.resolveProfile(catalogs, viewer, r, &resolved); err != nil {
		return err
	}
	if resolved.Template != "" || resolved.Profile != "" {
		d.Resolved = &resolved
	}
	return nil
}

// catalogs returns the templates and profiles in force.
func (s *Server) catalogs() (*registry.Catalogs, error) {
	if s.deps.Catalogs == nil {
		return &registry.Catalogs{}, nil
	}
	catalogs, err := s.deps.Catalogs()
	if err != nil {
		// The cause names files and servers, so it is for the log.
		return nil, fmt.Errorf("%w: %w", &httpError{Status: http.StatusServiceUnavailable,
			Type: serverError, Code: "registry_unread", RetryAfter: 2 * time.Second,
			Message: "The templates and profiles of this server are not known yet; send the " +
				"request again later."}, err)
	}
	return catalogs, nil
}

// viewer returns the sender as the registry sees it.
func (s *Server) viewer(ctx context.Context) registry.Viewer {
	return registry.Viewer{Tenant: tenantOf(ctx), Admin: s.isAdmin(ctx)}
}

// isAdmin reports whether the sender is an administrator: of a server without keys, everybody is.
func (s *Server) isAdmin(ctx context.Context) bool {
	return principalOf(ctx).Role == roleAdmin || s.keys.Load().Empty()
}

// unresolved returns the answer to a name that can't be used.
func unresolved(err error, path string) error {
	if why := (*registry.Unresolved)(nil); errors.As(err, &why) {
		return invalid(path+why.Field, "invalid_value", "Invalid '%s%s': %s", path, why.Field,
			why.Text)
	}
	return err
}

// overrideFault returns the answer to the first override that is not possible.
func overrideFault(f faults.List, path string) error {
	if len(f) == 0 {
		return nil
	}
	at, text, _ := strings.Cut(f[0].Error(), ": ")
	return invalid(path+at, "invalid_value", "Invalid '%s%s': %s.", path, at, text)
}

func (d *draft) resolveTemplate(
	catalogs *registry.Catalogs, viewer registry.Viewer, r *reference, into *store.Resolved,
) error {
	path := r.path + "model_template."
	e, err := catalogs.Template(viewer, r.template, r.version)
	if err != nil {
		return unresolved(err, path)
	}
	spec, f := e.Item.Spec.Override(r.engineArgs)
	if err := overrideFault(f, path+"overrides."); err != nil {
		return err
	}
	if !slices.Contains(spec.SupportedEndpoints, d.Endpoint) {
		return invalid("endpoint", "invalid_value", "Invalid 'endpoint': template %s supports "+
			"'%s', not %s.", e.Item.Key(), strings.Join(spec.SupportedEndpoints, "', '"),
			quoted(d.Endpoint))
	}
	into.Template, into.Version = e.Item.Name, e.Item.Version
	into.Mode, into.Models = string(spec.DeploymentMode), spec.Models()
	into.Warnings = append(into.Warnings, e.Warnings...)
	if spec.DeploymentMode == registry.External {
		target, err := spec.ProviderConfig.External()
		if err != nil {
			return fmt.Errorf("template %s: %w", e.Item.Key(), err) // it was validated
		}
		into.Target = &store.Target{URL: target.BaseURL, KeyEnv: target.APIKeyEnv,
			KeyFile: target.APIKeyFile, RequestsPerMinute: target.RequestsPerMinute,
			TokensPerMinute: target.TokensPerMinute}
	}
	if len(r.engineArgs) > 0 && spec.DeploymentMode != registry.Dedicated {
		into.Warnings = append(into.Warnings, fmt.Sprintf("model_template.overrides.engine_args "+
			"have no effect: the deployment of template %s is %s.", e.Item.Key(),
			spec.DeploymentMode))
	}
	d.Parameters.Template, err = json.Marshal(shownTemplate{Image: spec.Engine.Image,
		Engine: spec.Engine.Type, EngineArgs: spec.EngineArgs.All(), Spec: spec})
	if err != nil {
		return fmt.Errorf("encode template %s: %w", e.Item.Key(), err)
	}
	return nil
}

// shownTemplate is what is stored of a template.
type shownTemplate struct {
	Image      string                `json:"image"`
	Engine     string                `json:"engine"`
	EngineArgs map[string]any        `json:"engine_args"`
	Spec       registry.TemplateSpec `json:"spec"`
}

// resolveProfile applies the profile that the request names, that its service tier selects or that
// is the default.
func (d *draft) resolveProfile(
	catalogs *registry.Catalogs, viewer registry.Viewer, r *reference, into *store.Resolved,
) error {
	name, err := d.profileName(catalogs, viewer, r)
	if name == "" || err != nil {
		return err
	}
	path := r.path + "profile."
	e, err := catalogs.Profile(viewer, name)
	if err != nil {
		return unresolved(err, path)
	}
	p, f := e.Item.Override(r.scheduling)
	if err := overrideFault(f, path+"overrides."); err != nil {
		return err
	}
	into.Profile, into.Priority = p.Name, p.Spec.Scheduling.Priority
	into.Warnings = append(into.Warnings, e.Warnings...)
	_, overridden := r.scheduling["completion_window"]
	return d.follow(p, overridden, into)
}

// profileName returns the name of the profile that applies; empty: none does.
func (d *draft) profileName(
	catalogs *registry.Catalogs, viewer registry.Viewer, r *reference,
) (string, error) {
	if r.profile != "" {
		return r.profile, nil
	}
	if d.Tier == "" || d.Tier == "auto" || d.Tier == "default" {
		standard := catalogs.Standard()
		if _, err := catalogs.Profile(viewer, standard); err != nil {
			standard = "" // it is not for this tenant
		}
		return standard, nil
	}
	if name := catalogs.ByTier(d.Tier); name != "" {
		if _, err := catalogs.Profile(viewer, name); err == nil {
			return name, nil
		}
	}
	tiers := []string{"auto", "default"}
	for _, e := range catalogs.Profiles() {
		tier := e.Item.Spec.ServiceTierAlias
		_, err := catalogs.Profile(viewer, catalogs.ByTier(tier))
		if tier != "" && err == nil && !slices.Contains(tiers, tier) {
			tiers = append(tiers, tier)
		}
	}
	return "", invalid("service_tier", "invalid_value", "Invalid 'service_tier': no profile of "+
		"this server has the alias %s; use one of '%s'.", quoted(d.Tier),
		strings.Join(tiers, "', '"))
}

// beyondProfile returns the error for what a profile does not permit.
func beyondProfile(profile, param, format string, args ...any) error {
	return invalid(param, "invalid_value", "Invalid '%s': profile %s permits %s.", param, profile,
		fmt.Sprintf(format, args...))
}

// checkPriority refuses a priority above that of a batch's profile, if it has one.
func checkPriority(r *store.Resolved, priority int) error {
	if r == nil || r.Profile == "" {
		return nil
	}
	most := registry.Scheduling{Priority: r.Priority}.Level()
	if priority <= most {
		return nil
	}
	return beyondProfile(r.Profile, extensionsKey+".priority", "at most %d, its priority %s", most,
		r.Priority)
}

// follow applies a profile with overrides. What the request itself asks for holds if the profile
// permits it. overridden says that the window is an override, which wins over that of the request
// if that is longer.
func (d *draft) follow(p registry.Profile, overridden bool, into *store.Resolved) error {
	s, q, o := p.Spec.Scheduling, p.Spec.Quota, &d.Options
	beyond := func(param, format string, args ...any) error {
		return beyondProfile(p.Name, param, format, args...)
	}
	most := s.Window()
	switch longer := d.WindowLength == 0 || d.WindowLength > most; {
	case overridden && (most == 0 || longer): // SDKs send 24h, whatever the user wants
		into.Window, d.WindowLength = s.CompletionWindow, most
	case !overridden && most > 0 && longer:
		return beyond("completion_window", "a window of at most %s", s.CompletionWindow)
	}
	if !d.HasPriority {
		o.Priority = s.Level()
	}
	if err := checkPriority(into, o.Priority); err != nil {
		return err
	}
	if o.MaxConcurrency > s.MaxConcurrency {
		return beyond(extensionsKey+".max_concurrency", "at most %d", s.MaxConcurrency)
	}
	o.MaxConcurrency = cmp.Or(o.MaxConcurrency, s.MaxConcurrency)
	attempts := *s.RetryPolicy.MaxRetries + 1
	if o.RetryAttempts > attempts {
		return beyond(extensionsKey+".retry.attempts", "at most %d", attempts)
	}
	o.RetryAttempts = cmp.Or(o.RetryAttempts, attempts)
	if o.RetryOn == nil {
		o.RetryOn = s.RetryPolicy.RetryableErrors
	}
	o.Backoff = nil
	for _, pause := range s.RetryPolicy.BackoffSeconds {
		o.Backoff = append(o.Backoff, time.Duration(pause)*time.Second)
	}
	o.RequestTimeout = time.Duration(s.RequestTimeoutSeconds) * time.Second
	o.Preemptible, o.NoSpot, o.Providers = s.AllowPreempt, !s.AllowSpot, s.ProviderPreference
	o.MaxLines, o.MaxInputBytes = q.MaxRequestsPerBatch, int64(q.MaxInputSizeMB)*1e6
	o.MaxResultBytes = int64(q.MaxOutputSizeGB) * 1e9
	if st := p.Spec.Storage; st != (registry.Storage{}) {
		o.Storage = new(storageOf(st))
	}
	return nil
}

// resolvedObject is the object `_aibrix` of a batch.
type resolvedObject struct {
	Template *resolvedTemplate `json:"resolved_template"`
	Profile  *string           `json:"resolved_profile"`
	// Overrides are those of the request.
	Overrides *appliedOverrides `json:"applied_overrides"`
	Window    string            `json:"effective_completion_window"`
	Priority  *string           `json:"priority"`
	Mode      *string           `json:"deployment_mode"`
	Tier      *string           `json:"service_tier"`
	Warnings  []string          `json:"warnings"`
	*resolvedForAdmins
}

// resolvedForAdmins is what only administrators see.
type resolvedForAdmins struct {
	// Endpoint is the URL of an external template.
	Endpoint   *string         `json:"resolved_endpoint"`
	Image      *string         `json:"image"`
	EngineArgs json.RawMessage `json:"engine_args"` // without secrets
}

type resolvedTemplate struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type appliedOverrides struct {
	EngineArgs map[string]json.RawMessage `json:"engine_args,omitempty"`
	Scheduling map[string]json.RawMessage `json:"scheduling,omitempty"`
}

// showResolved returns what everybody may see of a resolution; nil: the batch has none.
func showResolved(b store.Batch) *resolvedObject {
	r := b.Resolved
	if r == nil {
		return nil
	}
	o := &resolvedObject{Profile: orNull(r.Profile), Window: cmp.Or(r.Window, b.Window),
		Priority: orNull(r.Priority), Mode: orNull(r.Mode), Tier: orNull(r.Tier),
		Warnings: append([]string{}, r.Warnings...)}
	if r.Template != "" {
		o.Template = &resolvedTemplate{r.Template, r.Version}
	}
	if r.Request != nil {
		fault := error(nil)
		request := &jsonObject{members: map[string]json.RawMessage{referenceKey: r.Request},
			fault: &fault}
		from := readReference(request, referenceKey)
		if fault == nil && len(from.engineArgs)+len(from.scheduling) > 0 {
			o.Overrides = &appliedOverrides{from.engineArgs, from.scheduling}
		}
	}
	return o
}

// addForAdmins adds what only administrators see.
func (s *Server) addForAdmins(ctx context.Context, o *resolvedObject, b store.Batch) error {
	if o == nil || !s.isAdmin(ctx) {
		return nil
	}
	o.resolvedForAdmins = &resolvedForAdmins{}
	if b.Resolved.Target != nil {
		o.Endpoint = orNull(b.Resolved.Target.URL)
	}
	if b.Resolved.Template == "" {
		return nil
	}
	parameters, err := s.meta.Parameters(ctx, b.ID)
	if err != nil {
		return fmt.Errorf("read the template of batch %s: %w", b.ID, err)
	}
	var shown shownTemplate
	if err := json.Unmarshal(parameters.Template, &shown); err != nil {
		return fmt.Errorf("read the template of batch %s: %w", b.ID, err)
	}
	o.Image, o.EngineArgs = orNull(shown.Image), registry.ShownArgs(shown.EngineArgs)
	return nil
}

// notOfTemplate returns a sentence for each model that is none of the batch's template.
func notOfTemplate(b store.Batch) map[string]string {
	sentences := map[string]string{}
	for _, m := range b.Models {
		if !slices.Contains(b.Resolved.Models, m.Model) {
			sentences[m.Model] = fmt.Sprintf("template %s@%s serves the model '%s', not %s",
				b.Resolved.Template, b.Resolved.Version,
				strings.Join(b.Resolved.Models, "', '"), quoted(m.Model))
		}
	}
	return sentences
}
