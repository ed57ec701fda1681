package kube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/registry"
)

// Manifests are the objects of a resource that are kept current.
type Manifests interface {
	// Read returns the manifests in JSON, without status, by the names of the objects. The error
	// says why they may be old. Before listed is true they are not known, and the error is not nil.
	Read() (manifests map[string]string, listed bool, err error)
	// String returns the resource and the namespace.
	String() string
}

// Objects reads the documents of objects: each is one. Its methods are called by one goroutine.
type Objects struct {
	kind      registry.Kind
	manifests Manifests

	last map[string]string
	read bool // at least once
}

// NewObjects returns the source of objects with items of the kind.
func NewObjects(kind registry.Kind, m Manifests) *Objects {
	return &Objects{kind: kind, manifests: m}
}

// String returns the resource, the version that is read, and the namespace.
func (o *Objects) String() string { return o.manifests.String() }

// Read returns the documents as Source.Read does. Those of the oldest objects come first, so that
// they count where two contradict each other.
func (o *Objects) Read() (documents []registry.Document, changed bool, err error) {
	all, listed, err := o.manifests.Read()
	if !listed || o.read && maps.Equal(all, o.last) {
		return nil, false, err
	}
	o.last, o.read = all, true
	type dated struct {
		created time.Time
		registry.Document
	}
	var sorted []dated
	for name, text := range all {
		created, document := o.document(name, text)
		sorted = append(sorted, dated{created, document})
	}
	slices.SortFunc(sorted, func(a, b dated) int {
		return cmp.Or(a.created.Compare(b.created), strings.Compare(a.Name, b.Name))
	})
	for _, d := range sorted {
		documents = append(documents, d.Document)
	}
	return documents, true, err
}

// manifest is what a document has of an object.
type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string    `json:"name"`
		Namespace string    `json:"namespace"`
		Created   time.Time `json:"creationTimestamp,omitzero"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec,omitempty"`
}

// document returns an object as a document. Objects of others may have fields that are not known
// here, so what is not used of them is left out.
func (o *Objects) document(name, text string) (created time.Time, d registry.Document) {
	d = registry.Document{Name: fmt.Sprintf("%s %s", o.kind, name), Kind: o.kind}
	var m manifest
	if d.Err = json.Unmarshal([]byte(text), &m); d.Err != nil {
		return created, d
	}
	d.Name = DocumentName(o.kind, m.Metadata.Namespace, name)
	created, m.Metadata.Created = m.Metadata.Created, time.Time{}
	if o.kind == registry.Objectives && len(m.Spec) > 0 {
		var used struct {
			Priority json.RawMessage `json:"priority,omitempty"`
			PoolRef  struct {
				Name string `json:"name"`
			} `json:"poolRef"`
		}
		if d.Err = json.Unmarshal(m.Spec, &used); d.Err != nil {
			return created, d
		}
		m.Spec, d.Err = json.Marshal(used)
	}
	if d.Err == nil {
		d.Text, d.Err = json.Marshal(m)
	}
	return created, d
}

// DocumentName returns the name of the document of an object.
func DocumentName(kind registry.Kind, namespace, name string) string {
	return fmt.Sprintf("%s object %s/%s", kind, namespace, name)
}

// Status is what the status of an object is to say.
type Status struct {
	Object string // its name
	registry.Condition
}

// Statuses returns the status of each object of the kind that is a document of the namespace.
// exists reports whether there is a pool of a name, and taken why a pool of the catalogs is not in
// use; empty: it is.
func Statuses(
	c *registry.Catalogs, kind registry.Kind, exists func(string) bool, taken func(string) string,
) (all []Status) {
	prefix := fmt.Sprintf("%s object ", kind)
	objectOf := func(document string) (name string, is bool) {
		name, is = strings.CutPrefix(document, prefix)
		return name[strings.LastIndexByte(name, '/')+1:], is
	}
	refused := map[string]bool{}
	for _, r := range c.Refused() {
		name, is := objectOf(r.Document)
		if !is || refused[name] {
			continue
		}
		refused[name] = true
		text := r.Text
		if r.Path != "" {
			text = r.Path + ": " + text
		}
		if r.Kept {
			text += "; the last good version stays in force"
		}
		all = append(all, Status{name, registry.Condition{Type: registry.Accepted,
			Reason: registry.ReasonRefused, Message: text}})
	}
	add := func(document string, condition registry.Condition) {
		if name, is := objectOf(document); is && !refused[name] {
			all = append(all, Status{name, condition})
		}
	}
	for _, e := range c.UseCases() {
		add(e.Document, e.Item.Accepted(exists))
	}
	for _, e := range c.Pools() {
		condition := registry.Condition{Type: registry.Accepted, Status: true,
			Reason: registry.ReasonAccepted, Message: "The pool is in use."}
		if why := taken(e.Item.Name); why != "" {
			condition = registry.Condition{Type: registry.Accepted, Message: why,
				Reason: registry.ReasonRefused}
		}
		add(e.Document, condition)
	}
	return all
}
