package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/internal/strictyaml"
	"github.com/tidefill/tidefill/registry"
)

func describeItemsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe KIND NAME[@VERSION]...",
		Short: "Say all of a template, a profile or a set of use cases",
		Long: `Say all of templates, profiles or sets of use cases in force: the document that each is read from, who sees it, and each field with its
default. Also say what users may override, which pools are missing, what has no effect, and what is refused. KIND is template, profile or usecase; KIND/NAME
does the same.

--admin or TIDEFILL_ADMIN is the URL of the daemon's admin address (admin_listen).`,
		Example: `  tidefill describe template large-prod
  tidefill describe template large-prod@v2.0.0
  tidefill describe profile/night
  tidefill describe usecase chat`,
		Args: cobra.MinimumNArgs(1),
	}
	return itemsCommand(cmd, objectFormats, func(cmd *cobra.Command, r *remote, t itemTarget,
		of *client.Registry) error {
		if len(t.names) == 0 {
			return usageErrorf("give the name of a %s, such as tidefill describe %s NAME", t.kind,
				t.kind)
		}
		chosen, err := t.choose(of)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		for i := range chosen {
			err := r.print(out, chosen[i].Raw, func(out io.Writer) error {
				if i > 0 {
					fmt.Fprintln(out)
				}
				return describeItem(out, t.kind, &chosen[i], of)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// describeItem prints an item for people.
func describeItem(
	w io.Writer, kind registry.Kind, i *client.RegistryItem, of *client.Registry,
) error {
	row := func(name, format string, args ...any) {
		printf(w, "%-13s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("Name:", "%s", i.Name)
	var spec any
	switch kind {
	case registry.UseCases:
		var s registry.UseCaseSetSpec
		if err := readSpec(i, &s); err != nil {
			return err
		}
		row("Pools:", "%s", poolsOf(s))
		for _, c := range i.Conditions {
			row(c.Type+":", "%s (%s): %s", yesNo(c.Status), c.Reason, c.Message)
		}
		spec = s
	case registry.Profiles:
		var s registry.ProfileSpec
		if err := readSpec(i, &s); err != nil {
			return err
		}
		row("Default:", "%s", yesNo(of.DefaultProfile != nil && *of.DefaultProfile == i.Name))
		spec = s
	default:
		var s registry.TemplateSpec
		if err := readSpec(i, &s); err != nil {
			return err
		}
		row("Version:", "%s", i.Version)
		row("Status:", "%s", i.Status)
		row("Overrides:", "%s", allowedOverrides(&s))
		spec = s
	}
	if kind != registry.UseCases {
		row("Description:", "%s", orNone(i.Description))
		visible := "all tenants"
		if len(i.VisibleTo) > 0 {
			visible = strings.Join(i.VisibleTo, ", ")
		}
		row("Visible to:", "%s", visible)
	}
	row("Document:", "%s:%d", i.Document, i.Row)
	if len(i.Warnings) == 0 {
		row("Warnings:", "none")
	}
	for n, warning := range i.Warnings {
		row(map[bool]string{true: "Warnings:"}[n == 0], "%s", warning)
	}
	for n := range of.Refused {
		if f := &of.Refused[n]; f.Kind == string(kind) && f.Name == i.Name &&
			(f.Version == i.Version || f.Version == "") {
			row("Refused:", "%s; for %s", refusedText(f),
				humanize.Duration(time.Duration(f.Age*float64(time.Second))))
		}
	}
	if i.Kept {
		row("", "This is the last good version. tidefill check lists every fault of the document.")
	}
	fmt.Fprintln(w, "Spec:")
	var text bytes.Buffer
	if err := writeYAML(&text, strictyaml.EncodeSet(spec)); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		printf(w, "  %s\n", strings.TrimSuffix(line, "\n"))
	}
	return nil
}

// allowedOverrides names the engine arguments that users may set, with their bounds.
func allowedOverrides(s *registry.TemplateSpec) string {
	var all []string
	for _, name := range s.Allowed() {
		switch b := s.Overrides.EngineArgs[name]; {
		case b.Min != nil && b.Max != nil:
			name += fmt.Sprintf(" (%v to %v)", *b.Min, *b.Max)
		case b.Min != nil:
			name += fmt.Sprintf(" (min %v)", *b.Min)
		case b.Max != nil:
			name += fmt.Sprintf(" (max %v)", *b.Max)
		}
		all = append(all, name)
	}
	return orNone(strings.Join(all, ", "))
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
