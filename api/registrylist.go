package api

import (
	"net/http"

	"github.com/tidefill/tidefill/registry"
)

// registryObject lists the templates and profiles that the sender may name.
type registryObject struct {
	Object    string           `json:"object"`
	Templates []listedTemplate `json:"templates"`
	Profiles  []listedProfile  `json:"profiles"`
	// Default is the profile of batches that name none; null: there is none.
	Default *string `json:"default_profile"`
}

type listedTemplate struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Status      registry.Status `json:"status"`
	Description string          `json:"description"`
	Models      []string        `json:"models"`
	Endpoints   []string        `json:"supported_endpoints"`
	Mode        registry.Mode   `json:"deployment_mode"`
	// Overrides are the engine arguments that a batch may set.
	Overrides []string `json:"overridable_engine_args"`
}

type listedProfile struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Window      string   `json:"completion_window"`
	Priority    string   `json:"priority"`
	MaxRequests int      `json:"max_requests_per_batch"`
	Tier        *string  `json:"service_tier"`
	Overrides   []string `json:"overridable_scheduling"`
}

// listRegistry answers GET /v1/registry: what a batch may name, without what only administrators
// see.
func (s *Server) listRegistry(w http.ResponseWriter, r *http.Request) error {
	catalogs, err := s.catalogs()
	if err != nil {
		return err
	}
	viewer := s.viewer(r.Context())
	o := registryObject{Object: "registry", Templates: []listedTemplate{},
		Profiles: []listedProfile{}}
	for _, e := range catalogs.Templates() {
		t := e.Item
		if !viewer.Sees(t.VisibleTo) || t.Status == registry.Draft && !viewer.Admin {
			continue
		}
		o.Templates = append(o.Templates, listedTemplate{Name: t.Name, Version: t.Version,
			Status: t.Status, Description: t.Description, Models: t.Spec.Models(),
			Endpoints: t.Spec.SupportedEndpoints, Mode: t.Spec.DeploymentMode,
			Overrides: append([]string{}, t.Spec.Allowed()...)})
	}
	for _, e := range catalogs.Profiles() {
		p := e.Item
		if !viewer.Sees(p.VisibleTo) {
			continue
		}
		listed := listedProfile{Name: p.Name, Description: p.Description,
			Window:   p.Spec.Scheduling.CompletionWindow,
			Priority: p.Spec.Scheduling.Priority, MaxRequests: p.Spec.Quota.MaxRequestsPerBatch,
			Overrides: append([]string{}, p.Allowed()...)}
		if catalogs.ByTier(p.Spec.ServiceTierAlias) == p.Name {
			listed.Tier = orNull(p.Spec.ServiceTierAlias)
		}
		o.Profiles = append(o.Profiles, listed)
		if catalogs.Standard() == p.Name {
			o.Default = orNull(p.Name)
		}
	}
	return writeJSON(w, o)
}
