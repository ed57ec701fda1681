package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Catalogs are the templates, profiles, use cases, pools and objectives that are in force, as
// documents have them. They are immutable. The zero value has none.
type Catalogs struct {
	templates  catalog[Template]
	profiles   catalog[Profile]
	useCases   catalog[UseCaseSet]
	pools      catalog[PoolManifest]
	objectives catalog[InferenceObjective]
	documents  []Refused // refused as a whole
	standard   string    // name of the default profile; empty: there is none
	byTier     map[string]string
	byModel    map[string][]*UseCase // in the order in which they were read
}

// Next returns the catalogs of what documents have now. Whatever is faulty stays in force as it
// was. The documents of the source that was configured first come first.
func (c *Catalogs) Next(now time.Time, documents []Document) *Catalogs {
	if c == nil {
		c = &Catalogs{}
	}
	next := &Catalogs{byTier: map[string]string{}}
	found := map[Kind][]readPart{}
	for _, d := range documents {
		parts, faults := read(d)
		for _, f := range faults {
			unreadable := len(parts) == 0
			r := Refused{Document: d.Name, Row: f.Row, Path: f.Path, Text: f.Text,
				Kept: unreadable && c.from(d.Name)}.shown()
			r.Since = since(c.documents, d.Name, r.Text, now)
			next.documents = append(next.documents, r)
			for _, kind := range kinds { // its items stay
				if unreadable {
					parts[kind] = &part{fault: f, reported: true}
				}
			}
		}
		for kind, p := range parts {
			found[kind] = append(found[kind], readPart{d.Name, p})
		}
	}
	before := *c
	before.templates.kind, before.profiles.kind = Templates, Profiles
	before.useCases.kind, before.pools.kind = UseCases, Pools
	before.objectives.kind = Objectives
	next.templates = *before.templates.next(now, found[Templates])
	next.profiles = *before.profiles.next(now, found[Profiles])
	next.useCases = *before.useCases.next(now, found[UseCases])
	next.pools = *before.pools.next(now, found[Pools])
	next.objectives = *before.objectives.next(now, found[Objectives])
	next.ambiguous(now, before.templates.refused)
	next.chooseStandard(now, before, found[Profiles])
	next.aliases(now, before.profiles.refused)
	order := make([]string, len(documents))
	for i, d := range documents {
		order[i] = d.Name
	}
	next.settleUseCases(now, &before.useCases, order)
	return next
}

// from reports whether an item in force is from a document.
func (c *Catalogs) from(document string) bool {
	return c.templates.from(document) || c.profiles.from(document) ||
		c.useCases.from(document) || c.pools.from(document) || c.objectives.from(document)
}

func since(all []Refused, document, text string, now time.Time) time.Time {
	for _, r := range all {
		if r.Document == document && r.Text == text {
			return r.Since
		}
	}
	return now
}

// ambiguous reports names with several active templates.
func (c *Catalogs) ambiguous(now time.Time, before []Refused) {
	for i := 0; i < len(c.templates.entries); {
		name := c.templates.entries[i].Item.Name
		all := c.templates.named(name)
		if versions := activeOf(all); len(versions) > 1 {
			text := fmt.Sprintf("is active in the versions %s; users must name one, until all but "+
				"one are deprecated", strings.Join(versions, ", "))
			c.templates.refuse(Refused{Key: Key{Name: name}, Document: all[0].Document,
				Row: all[0].Row, Text: text, Since: since(before, all[0].Document, text, now)})
		}
		i += len(all)
	}
}

func activeOf(all []Entry[Template]) (versions []string) {
	for _, e := range all {
		if e.Item.Status == Active {
			versions = append(versions, e.Item.Version)
		}
	}
	return versions
}

// chooseStandard takes the default profile of the first document that names one. One that does not
// exist is reported, and the last one stays.
func (c *Catalogs) chooseStandard(now time.Time, before Catalogs, parts []readPart) {
	for _, d := range parts {
		name := d.part.standard
		switch _, exists := c.profiles.find(Key{Name: name}); {
		case d.part.fault != nil:
			c.standard = before.standard
		case name == "":
			continue
		case exists:
			c.standard = name
		default:
			text := fmt.Sprintf("there is no profile %q in force", name)
			c.profiles.refuse(Refused{Document: d.document, Path: "default", Text: text,
				Row:   d.part.standardRow + d.part.first,
				Since: since(before.profiles.refused, d.document, text, now)})
			continue
		}
		break
	}
	if _, exists := c.profiles.find(Key{Name: c.standard}); !exists {
		c.standard = ""
	}
}

// aliases notes which profile each service tier selects. Of several with one alias none is
// selected.
func (c *Catalogs) aliases(now time.Time, before []Refused) {
	by := map[string][]Entry[Profile]{}
	for _, e := range c.profiles.entries {
		if alias := e.Item.Spec.ServiceTierAlias; alias != "" {
			by[alias] = append(by[alias], e)
		}
	}
	for _, alias := range serviceTiers {
		all := by[alias]
		if len(all) == 1 {
			c.byTier[alias] = all[0].Item.Name
		}
		if len(all) < 2 {
			continue
		}
		var names []string
		for _, e := range all {
			names = append(names, e.Item.Name)
		}
		text := fmt.Sprintf("is the alias %s of the profiles %s; none of them is selected by it",
			alias, strings.Join(names, ", "))
		c.profiles.refuse(Refused{Key: all[1].Item.Key(), Document: all[1].Document,
			Row: all[1].Row, Path: "spec.openai_service_tier_alias", Text: text,
			Since: since(before, all[1].Document, text, now)})
	}
}

// Refused lists what is not in force as it stands.
func (c *Catalogs) Refused() []Refused {
	return slices.Concat(c.documents, c.templates.refused, c.profiles.refused, c.useCases.refused,
		c.pools.refused, c.objectives.refused)
}

// Faults is Refused, but lists each fault of an item. Their times are unknown.
func (c *Catalogs) Faults() []Refused {
	return slices.Concat(c.documents, c.templates.faults, c.profiles.faults, c.useCases.faults,
		c.pools.faults, c.objectives.faults)
}

// Templates lists the templates by name and version.
func (c *Catalogs) Templates() []Entry[Template] { return c.templates.entries }

// Profiles lists the profiles by name.
func (c *Catalogs) Profiles() []Entry[Profile] { return c.profiles.entries }

// Standard returns the name of the default profile; empty: there is none.
func (c *Catalogs) Standard() string { return c.standard }

// ByTier returns the name of the profile that a service tier selects; empty: none.
func (c *Catalogs) ByTier(tier string) string { return c.byTier[tier] }

// Viewer is who asks for items.
type Viewer struct {
	Tenant string
	Admin  bool
}

// Sees reports whether the viewer sees an item that these tenants see; none: all do.
func (v Viewer) Sees(tenants []string) bool {
	return v.Admin || len(tenants) == 0 || slices.Contains(tenants, v.Tenant)
}

// Unresolved says why a name can't be used.
type Unresolved struct {
	Field string // name or version
	Text  string
}

// Error returns the text.
func (u *Unresolved) Error() string { return u.Text }

// Template returns the template of a name and a version. Without a version it is the only active
// one.
func (c *Catalogs) Template(v Viewer, name, version string) (Entry[Template], error) {
	none := Entry[Template]{}
	all := slices.DeleteFunc(slices.Clone(c.templates.named(name)), func(e Entry[Template]) bool {
		return !v.Sees(e.Item.VisibleTo)
	})
	if len(all) == 0 {
		return none, &Unresolved{"name", fmt.Sprintf("There is no template %q; %s.", name,
			listed(c.names(v)))}
	}
	if version == "" {
		active := activeOf(all)
		if len(active) != 1 {
			return none, c.notOne(name, active, all)
		}
		version = active[0]
	}
	i := slices.IndexFunc(all, func(e Entry[Template]) bool { return e.Item.Version == version })
	if i < 0 {
		return none, &Unresolved{"version", fmt.Sprintf("Template %q has no version %q; it has %s.",
			name, version, strings.Join(versionsOf(all), ", "))}
	}
	switch e := all[i]; {
	case e.Item.Status == Deprecated:
		return none, &Unresolved{"version", fmt.Sprintf("Version %s of template %q is deprecated, "+
			"and takes no new batches%s.", version, name, instead(activeOf(all)))}
	case e.Item.Status == Draft && !v.Admin:
		return none, &Unresolved{"version", fmt.Sprintf("Version %s of template %q is a draft, "+
			"which only admins may use%s.", version, name, instead(activeOf(all)))}
	default:
		return e, nil
	}
}

// notOne says why a name without a version is no template.
func (c *Catalogs) notOne(name string, active []string, all []Entry[Template]) *Unresolved {
	if len(active) > 1 {
		return &Unresolved{"version", fmt.Sprintf("Template %q is active in the versions %s; name "+
			"one as version.", name, strings.Join(active, ", "))}
	}
	return &Unresolved{"name", fmt.Sprintf("Template %q has no active version; it has %s.", name,
		strings.Join(versionsOf(all), ", "))}
}

func versionsOf(all []Entry[Template]) (versions []string) {
	for _, e := range all {
		versions = append(versions, fmt.Sprintf("%s (%s)", e.Item.Version, e.Item.Status))
	}
	return versions
}

func instead(active []string) string {
	if len(active) == 0 {
		return ""
	}
	return "; active is " + strings.Join(active, ", ")
}

// names lists the names of templates with an active version that somebody sees.
func (c *Catalogs) names(v Viewer) (names []string) {
	for _, e := range c.templates.entries {
		last := len(names) - 1
		if e.Item.Status == Active && v.Sees(e.Item.VisibleTo) &&
			(last < 0 || names[last] != e.Item.Name) { // entries are sorted by name
			names = append(names, e.Item.Name)
		}
	}
	return names
}

// Profile returns the profile of a name.
func (c *Catalogs) Profile(v Viewer, name string) (Entry[Profile], error) {
	e, found := c.profiles.find(Key{Name: name})
	if !found || !v.Sees(e.Item.VisibleTo) {
		var names []string
		for _, of := range c.profiles.entries {
			if v.Sees(of.Item.VisibleTo) {
				names = append(names, of.Item.Name)
			}
		}
		return Entry[Profile]{}, &Unresolved{"name", fmt.Sprintf("There is no profile %q; %s.",
			name, listed(names))}
	}
	return e, nil
}

// listed names all that there are.
func listed(names []string) string {
	const shown = 40
	switch {
	case len(names) == 0:
		return "there is none"
	case len(names) > shown:
		return fmt.Sprintf("there are %s and %d others", strings.Join(names[:shown], ", "),
			len(names)-shown)
	}
	return "there are " + strings.Join(names, ", ")
}
