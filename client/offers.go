package client

import (
	"context"
	"net/http"
	"slices"
)

// Offers are the templates and profiles that a batch may name.
type Offers struct {
	Templates []struct {
		Name        string `json:"name"`
		Version     string `json:"version"`
		Status      string `json:"status"`
		Description string `json:"description"`
	} `json:"templates"`
	Profiles []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Tier        string `json:"service_tier"` // empty: none selects it
	} `json:"profiles"`
}

// Offers returns the templates and profiles that the owner of the key may name.
func (c *Client) Offers(ctx context.Context) (o Offers, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: "/v1/registry"}, &o)
	return o, err
}

// TemplateNames lists the names, alone and with versions, of templates that take new batches.
func (o Offers) TemplateNames() (names []string) {
	for _, t := range o.Templates {
		if t.Status != "active" {
			continue
		}
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
		names = append(names, t.Name+"@"+t.Version)
	}
	return names
}

// ProfileNames lists the names of profiles.
func (o Offers) ProfileNames() (names []string) {
	for _, p := range o.Profiles {
		names = append(names, p.Name)
	}
	return names
}

// Tiers lists the service tiers that select a profile.
func (o Offers) Tiers() []string {
	tiers := []string{"auto", "default"}
	for _, p := range o.Profiles {
		if p.Tier != "" {
			tiers = append(tiers, p.Tier)
		}
	}
	return tiers
}
