package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/internal/strictyaml"
	"github.com/tidefill/tidefill/internal/suggest"
	"github.com/tidefill/tidefill/registry"
)

// itemKinds are the words for kinds of items, as they are written in commands.
var itemKinds = map[string]registry.Kind{"template": registry.Templates,
	"templates": registry.Templates, "profile": registry.Profiles, "profiles": registry.Profiles,
	"usecase": registry.UseCases, "usecases": registry.UseCases}

// itemTarget is what a command is about.
type itemTarget struct {
	kind  registry.Kind
	names []string // each with or without a version; none: all
}

// parseItems reads KIND [NAME...] or KIND/NAME....
func parseItems(args []string) (t itemTarget, err error) {
	kind := func(word string) (registry.Kind, error) {
		if kind, known := itemKinds[word]; known {
			return kind, nil
		}
		known := sortedKeys(itemKinds)
		if near := suggest.Nearest(word, known); near != "" {
			return "", usageErrorf("there is no kind %q; did you mean %s?", word, near)
		}
		return "", usageErrorf("there is no kind %q; give templates, profiles or usecases", word)
	}
	word, name, slash := strings.Cut(args[0], "/")
	if t.kind, err = kind(word); err != nil {
		return t, err
	}
	if !slash {
		t.names = args[1:]
		return t, nil
	}
	t.names = []string{name}
	for _, arg := range args[1:] {
		word, name, slash := strings.Cut(arg, "/")
		of, err := kind(word)
		switch {
		case err != nil:
			return t, err
		case !slash || of != t.kind:
			return t, usageErrorf("%q is no %s/NAME; give items of one kind", arg, t.kind)
		}
		t.names = append(t.names, name)
	}
	return t, nil
}

// all returns the items of the target's kind.
func (t itemTarget) all(r *client.Registry) []client.RegistryItem {
	switch t.kind {
	case registry.Profiles:
		return r.Profiles
	case registry.UseCases:
		return r.UseCases
	}
	return r.Templates
}

// choose returns the items that the target names, or all of its kind.
func (t itemTarget) choose(r *client.Registry) (chosen []client.RegistryItem, err error) {
	all := t.all(r)
	switch {
	case r.Unknown != nil && len(all) == 0:
		return nil, fmt.Errorf("it is not known yet which %ss are in force: %s", t.kind, *r.Unknown)
	case len(t.names) == 0:
		return all, nil
	}
	for _, name := range t.names {
		found, err := t.find(r, name)
		if err != nil {
			return nil, err
		}
		for _, i := range found {
			if !slices.ContainsFunc(chosen, func(c client.RegistryItem) bool {
				return c.Name == i.Name && c.Version == i.Version
			}) {
				chosen = append(chosen, i)
			}
		}
	}
	return chosen, nil
}

// find returns the items of a name, or the one of NAME@VERSION.
func (t itemTarget) find(r *client.Registry, name string) (found []client.RegistryItem, err error) {
	all := t.all(r)
	for _, i := range all {
		if i.Name == name {
			found = append(found, i)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	base, version := name, ""
	if at := strings.LastIndexByte(name, '@'); at >= 0 && t.kind == registry.Templates {
		base, version = name[:at], name[at+1:]
	}
	var names, versions []string
	for _, i := range all {
		if i.Name == base && i.Version == version {
			return []client.RegistryItem{i}, nil
		}
		if i.Name == base {
			versions = append(versions, i.Version)
		}
		if !slices.Contains(names, i.Name) {
			names = append(names, i.Name)
		}
	}
	for _, f := range r.Refused {
		if f.Kind == string(t.kind) && f.Name == base && (version == "" || f.Version == version) {
			f.Kind = "document" // the name is in the message already
			return nil, fmt.Errorf("%s %q is refused: %s; tidefill check lists every fault of "+
				"its document", t.kind, name, refusedText(&f))
		}
	}
	switch {
	case len(versions) > 0:
		return nil, fmt.Errorf("template %q has no version %q; %s", base, version,
			strictyaml.Known(version, versions))
	case len(names) == 0:
		return nil, fmt.Errorf("there is no %s %q; there is none at all", t.kind, name)
	}
	return nil, fmt.Errorf("there is no %s %q; %s", t.kind, name, strictyaml.Known(base, names))
}

// refused lists what is refused of the target, and documents that are refused as a whole.
func (t itemTarget) refused(r *client.Registry) (of []client.RegistryRefused) {
	for _, f := range r.Refused {
		named := slices.ContainsFunc(t.names, func(name string) bool {
			return name == f.Name || name == f.Name+"@"+f.Version
		})
		if f.Kind == string(t.kind) && (named || len(t.names) == 0) ||
			f.Kind == "document" && len(t.names) == 0 {
			of = append(of, f)
		}
	}
	return of
}

func refusedText(f *client.RegistryRefused) string {
	of := registry.Refused{Key: registry.Key{Name: f.Name, Version: f.Version},
		Document: f.Document, Row: f.Row, Path: f.Path, Text: f.Text}
	if f.Kind != "document" {
		of.Kind = registry.Kind(f.Kind)
	}
	return of.String()
}

// printRefused prints what is not in force as it stands, and what to do about it.
func printRefused(w io.Writer, refused []client.RegistryRefused, r *client.Registry) {
	for _, s := range r.Sources {
		if s.Error != nil {
			printf(w, "The source %s can't be read: %s. What was read last stays in force.\n",
				s.Name, *s.Error)
		}
	}
	if len(refused) == 0 {
		return
	}
	fmt.Fprintln(w, "Refused:")
	for i := range refused {
		f := &refused[i]
		printf(w, "  %s; %s, for %s\n", refusedText(f), map[bool]string{true: "the last good " +
			"version stays in force", false: "not in force"}[f.Kept],
			humanize.Duration(time.Duration(f.Age*float64(time.Second))))
	}
	fmt.Fprintln(w, "Correct the document; it is read again within two seconds. "+
		"tidefill check FILE lists every fault of a file.")
}

// itemsCommand completes a command about items, whose names shells complete.
func itemsCommand(cmd *cobra.Command, formats []string, do func(cmd *cobra.Command, r *remote,
	t itemTarget, of *client.Registry) error) *cobra.Command {
	r := new(remote)
	r.registerAdmin(cmd, formats)
	kinds := []string{"templates", "profiles", "usecases"}
	if cmd.Name() == "describe" {
		kinds = []string{"template", "profile", "usecase"}
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) (
		[]string, cobra.ShellCompDirective) {
		return completeItems(cmd.Context(), r, kinds, args, word),
			cobra.ShellCompDirectiveNoFileComp
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, err := parseItems(args)
		if err != nil {
			return err
		}
		c, err := r.client()
		if err != nil {
			return err
		}
		defer c.Close()
		of, err := c.Registry(cmd.Context())
		if err != nil {
			return withAdminRemedy(err)
		}
		return do(cmd, r, t, &of)
	}
	return cmd
}

// completeItems returns what may stand in place of a word: a kind, or the name of an item.
func completeItems(
	ctx context.Context, r *remote, kinds, args []string, word string,
) (words []string) {
	prefix, _, slash := strings.Cut(word, "/")
	switch {
	case len(args) == 0 && !slash:
		return kinds
	case len(args) == 0:
		args = []string{prefix}
		prefix += "/"
	default:
		prefix = ""
	}
	kind := itemKinds[args[0]]
	of, err := soon(ctx, r, (*client.Client).Registry)
	if err != nil || kind == "" {
		return nil
	}
	for _, i := range (itemTarget{kind: kind}).all(&of) {
		for _, name := range []string{i.Name, i.Name + "@" + i.Version} {
			if printed := humanize.Printable(name); printed == name && !slices.Contains(words,
				prefix+name) && !slices.Contains(args[1:], name) && (i.Version != "" ||
				name == i.Name) {
				words = append(words, prefix+name)
			}
		}
	}
	return words
}
