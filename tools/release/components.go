package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// bom is a bill of materials in CycloneDX's format, as far as it is merged.
type bom struct {
	Schema       string       `json:"$schema"`
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Ref        string          `json:"bom-ref"`
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Version    string          `json:"version"`
	Scope      string          `json:"scope,omitempty"`
	Hashes     json.RawMessage `json:"hashes,omitempty"`
	Licenses   []license       `json:"licenses,omitempty"`
	PURL       string          `json:"purl"`
	References json.RawMessage `json:"externalReferences,omitempty"`
	Evidence   *evidence       `json:"evidence,omitempty"`
}

// evidence is what was found in a module.
type evidence struct {
	Licenses []license `json:"licenses"`
}

type license struct {
	License json.RawMessage `json:"license"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn,omitempty"`
}

// ours has the licenses of what is in no module cache: of this module, and of Go's library.
var ours = map[string][]license{
	"github.com/tidefill/tidefill": {{json.RawMessage(`{"id": "Apache-2.0"}`)}},
	"std":                          {{json.RawMessage(`{"id": "BSD-3-Clause"}`)}},
}

// components writes the bill of materials: the modules that are linked into any of the programs,
// each with its license.
func (r *release) components(dir string, programs []program) error {
	// Licenses are read in the module cache. The lister works outside of the module: without its
	// go.sum, it would ask the network for modules and sums that the builds have checked already.
	if _, err := output("go", "mod", "download"); err != nil {
		return err
	}
	var all bom
	modules := map[string]component{}
	for _, p := range programs {
		path := filepath.Join(dir, "bom.json")
		c := exec.Command(r.sbom, "bin", "-json", "-licenses", "-std", "-short-purls", "-noserial",
			"-notimestamp", "-output", path, "-version", r.version, p.path)
		c.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off")
		var messages bytes.Buffer
		c.Stderr = &messages
		err := c.Run()
		content, failed := os.ReadFile(path)
		if err = errors.Join(err, failed); err == nil {
			all = bom{}
			err = json.Unmarshal(content, &all)
		}
		if err != nil {
			return fmt.Errorf("list the components of %s: %w\n%s", p.path, err, &messages)
		}
		for _, c := range all.Components {
			modules[c.Ref] = c
		}
	}
	all.Metadata.Timestamp = r.at.Format(time.RFC3339)
	all.Metadata.Component.Licenses = ours[all.Metadata.Component.Name]
	root := dependency{Ref: all.Metadata.Component.Ref}
	all.Components, all.Dependencies = nil, nil
	for _, ref := range slices.Sorted(maps.Keys(modules)) {
		c := modules[ref]
		if c.Evidence == nil {
			if c.Licenses = ours[c.Name]; c.Licenses == nil {
				return fmt.Errorf("%s %s: no license was found; look at the module, and name its "+
					"license in tools/release/components.go", c.Name, c.Version)
			}
		}
		all.Components = append(all.Components, c)
		all.Dependencies = append(all.Dependencies, dependency{Ref: ref})
		root.On = append(root.On, ref)
	}
	all.Dependencies = append([]dependency{root}, all.Dependencies...)
	content, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("tidefill_%s.cdx.json", r.version), append(content, '\n'))
}
