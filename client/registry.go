package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// Registry is what a daemon has of templates, profiles and use cases.
type Registry struct {
	Time float64 `json:"time"` // of the daemon, in Unix seconds
	// Unknown is why it is not known yet what is in force; nil: it is.
	Unknown   *string        `json:"unknown"`
	Templates []RegistryItem `json:"templates"`
	Profiles  []RegistryItem `json:"profiles"`
	UseCases  []RegistryItem `json:"use_cases"` // sets of them
	// DefaultProfile is the profile of batches that name none; nil: there is none.
	DefaultProfile *string           `json:"default_profile"`
	Refused        []RegistryRefused `json:"refused"`
	Sources        []struct {
		Name  string  `json:"name"`
		Error *string `json:"error"` // why it can't be read now; nil: it can
	} `json:"sources"`
}

// RegistryItem is a template, a profile or a set of use cases that is in force.
type RegistryItem struct {
	Name        string   `json:"name"`    // of a set after its namespace, if it has one
	Version     string   `json:"version"` // of templates
	Status      string   `json:"status"`  // of templates
	Description string   `json:"description"`
	VisibleTo   []string `json:"visible_to"` // tenants; empty: all
	Document    string   `json:"document"`
	Row         int      `json:"row"`
	// Kept says that the document has another version of the item now, which is refused.
	Kept     bool     `json:"kept"`
	Warnings []string `json:"warnings"`
	// Conditions say of use cases whether their pools exist.
	Conditions []RegistryCondition `json:"conditions"`
	// Spec has all fields with their defaults, as documents have them. What looks like a secret is
	// three asterisks.
	Spec json.RawMessage `json:"spec"`

	// Raw is the object as it was received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler. It also sets Raw.
func (i *RegistryItem) UnmarshalJSON(raw []byte) error {
	type plain RegistryItem
	if err := json.Unmarshal(raw, (*plain)(i)); err != nil {
		return err
	}
	i.Raw = append(json.RawMessage(nil), raw...)
	return nil
}

// RegistryCondition is a state of an item, as the status of a Kubernetes object has it.
type RegistryCondition struct {
	Type    string `json:"type"`
	Status  bool   `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// RegistryRefused is an item or a document that is not in force as it stands.
type RegistryRefused struct {
	Kind     string  `json:"kind"` // of the item, or document as a whole
	Name     string  `json:"name"`
	Version  string  `json:"version"`
	Document string  `json:"document"`
	Row      int     `json:"row"` // 0: unknown
	Path     string  `json:"path"`
	Text     string  `json:"text"`
	Kept     bool    `json:"kept"` // the last good version stays in force
	Age      float64 `json:"age_seconds"`
}

// Registry returns what is in force, and what is refused. The Client must be of the admin address.
func (c *Client) Registry(ctx context.Context) (r Registry, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: "/admin/registry"}, &r)
	return r, err
}
