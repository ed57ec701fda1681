package console

import (
	"encoding/json"
	"net/http"

	"github.com/tidefill/tidefill/dispatch/decision"
	"github.com/tidefill/tidefill/internal/strictyaml"
	"github.com/tidefill/tidefill/registry"
)

// RegistrySource is a source of items of the registry.
type RegistrySource struct {
	Name string
	Err  error // why it can't be read now; nil: it can
}

// registryList is the answer of GET /admin/registry.
type registryList struct {
	Object string        `json:"object"`
	Time   decision.Time `json:"time"`
	// Unknown is why it is not known yet what is in force; null: it is.
	Unknown   *string    `json:"unknown"`
	Templates []template `json:"templates"`
	Profiles  []profile  `json:"profiles"`
	UseCases  []useCases `json:"use_cases"`
	// Default is the name of the default profile; null: there is none.
	Default *string          `json:"default_profile"`
	Refused []refused        `json:"refused"`
	Sources []registrySource `json:"sources"`
}

// template is a template that is in force.
type template struct {
	Name    string          `json:"name"`
	Version string          `json:"version"`
	Status  registry.Status `json:"status"`
	inForce
}

// profile is a profile that is in force.
type profile struct {
	Name string `json:"name"`
	inForce
}

// useCases is a set of use cases that is in force.
type useCases struct {
	Name string `json:"name"` // after the namespace, if there is one
	inForce
	// Conditions say whether its pools exist.
	Conditions []registry.Condition `json:"conditions"`
}

// inForce is what items have in common.
type inForce struct {
	Description string   `json:"description"`
	VisibleTo   []string `json:"visible_to"` // empty: all tenants
	Document    string   `json:"document"`
	Row         int      `json:"row"`
	// Kept says that the document has another version of the item now, which is refused.
	Kept     bool     `json:"kept"`
	Warnings []string `json:"warnings"`
	// Spec has all fields with their defaults, as documents have them, without secrets.
	Spec json.RawMessage `json:"spec"`
}

// refused is an item or a document that is not in force as it stands.
type refused struct {
	// Kind is that of the item or, for a document as a whole, document.
	Kind     string        `json:"kind"`
	Name     string        `json:"name"`
	Version  string        `json:"version"`
	Document string        `json:"document"`
	Row      int           `json:"row"` // 0: unknown
	Path     string        `json:"path"`
	Text     string        `json:"text"`
	Kept     bool          `json:"kept"` // the last good version stays in force
	Since    decision.Time `json:"since"`
	Age      float64       `json:"age_seconds"`
}

type registrySource struct {
	Name  string  `json:"name"`
	Error *string `json:"error"` // null: it can be read
}

func (c *Console) registry(w http.ResponseWriter, _ *http.Request) error {
	list := registryList{Object: "registry", Time: decision.Time{Time: c.deps.Now()},
		Templates: []template{}, Profiles: []profile{}, UseCases: []useCases{},
		Refused: []refused{}, Sources: []registrySource{}}
	for _, s := range c.deps.RegistrySources() {
		shown := registrySource{Name: s.Name}
		if s.Err != nil {
			text := s.Err.Error()
			shown.Error = &text
		}
		list.Sources = append(list.Sources, shown)
	}
	all, err := c.deps.Registry()
	if err != nil {
		text := err.Error()
		list.Unknown = &text
	}
	for _, e := range all.Templates() {
		t := e.Item
		list.Templates = append(list.Templates, template{t.Name, t.Version, t.Status,
			showInForce(e, t.Description, t.VisibleTo, t.Spec)})
	}
	for _, e := range all.Profiles() {
		p := e.Item
		list.Profiles = append(list.Profiles, profile{p.Name,
			showInForce(e, p.Description, p.VisibleTo, p.Spec)})
	}
	pools := c.deps.Pools()
	for _, e := range all.UseCases() {
		list.UseCases = append(list.UseCases, useCases{e.Item.Key().String(),
			showInForce(e, "", nil, e.Item.Spec),
			[]registry.Condition{e.Item.Accepted(pools.HasPool)}})
	}
	if name := all.Standard(); name != "" {
		list.Default = &name
	}
	for _, r := range all.Refused() {
		kind := string(r.Kind)
		if kind == "" {
			kind = "document"
		}
		list.Refused = append(list.Refused, refused{Kind: kind, Name: r.Key.Name,
			Version: r.Key.Version, Document: r.Document, Row: r.Row, Path: r.Path,
			Text: r.Text, Kept: r.Kept, Since: decision.Time{Time: r.Since},
			Age: seconds(max(0, list.Time.Sub(r.Since)))})
	}
	return writeJSON(w, http.StatusOK, list)
}

func showInForce[T any](
	e registry.Entry[T], description string, visibleTo []string, spec any,
) inForce {
	shown := inForce{Description: description, VisibleTo: visibleTo, Document: e.Document,
		Row: e.Row, Kept: e.Kept, Warnings: e.Warnings}
	if visibleTo == nil {
		shown.VisibleTo = []string{}
	}
	if e.Warnings == nil {
		shown.Warnings = []string{}
	}
	encoded := strictyaml.Encode(spec)
	registry.HideSecrets(encoded)
	shown.Spec = strictyaml.JSON(encoded)
	return shown
}
