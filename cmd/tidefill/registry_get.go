package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/registry"
)

func getItemsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get KIND [NAME[@VERSION]...]",
		Short: "List the templates, profiles or use cases in force",
		Long: `List the templates, profiles or use cases that a daemon has in force, and below them on standard error what is refused. KIND is
templates, profiles or usecases. NAME is that of an item, or of a set of use cases; KIND/NAME does the same. A template is shown in all versions, or in the
given one.

With -o yaml, print a document that can be put back into templates.yaml, profiles.yaml or usecases.yaml. Values that look like secrets are ***.

--admin or TIDEFILL_ADMIN is the URL of the daemon's admin address (admin_listen).`,
		Example: `  tidefill get templates
  tidefill get template large-prod@v2.0.0 -o yaml
  tidefill get profile/night
  tidefill get usecases`,
		Args: cobra.MinimumNArgs(1),
	}
	return itemsCommand(cmd, tableFormats, func(cmd *cobra.Command, r *remote, t itemTarget,
		of *client.Registry) error {
		chosen, err := t.choose(of)
		if err != nil {
			return err
		}
		out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
		standard := ""
		if of.DefaultProfile != nil {
			standard = *of.DefaultProfile
		}
		switch r.format {
		case formatJSON:
			for i := range chosen {
				if err := printJSON(out, chosen[i].Raw); err != nil {
					return err
				}
			}
			return nil
		case formatYAML:
			if len(t.names) > 0 { // a part of the profiles need not have the default one
				standard = ""
			}
			return printDocument(out, errs, t.kind, chosen, standard)
		case formatName:
			for i := range chosen {
				printf(out, "%s/%s\n", t.kind, keyOf(&chosen[i]))
			}
			return nil
		}
		if err := printItems(out, errs, t.kind, chosen, r.format == formatWide, standard,
			len(of.Sources)); err != nil {
			return err
		}
		printRefused(errs, t.refused(of), of)
		return nil
	})
}

func keyOf(i *client.RegistryItem) registry.Key {
	return registry.Key{Name: i.Name, Version: i.Version}
}

// printItems prints a table, or says that it has no rows.
func printItems(
	out, errs io.Writer, kind registry.Kind, items []client.RegistryItem, wide bool,
	standard string, sources int,
) error {
	if len(items) == 0 {
		fmt.Fprintf(errs, "No %ss.\n", kind)
		if sources == 0 {
			fmt.Fprintln(errs, "The daemon reads no documents of them: set registry.dir, and see "+
				"docs/templates.md.")
		}
		return nil
	}
	table := newTable(out)
	row := func(narrow []string, more ...string) {
		if wide {
			narrow = append(narrow, more...)
		}
		for i := range narrow {
			if narrow[i] == "" {
				narrow[i] = "-"
			}
			narrow[i] = humanize.Printable(narrow[i])
		}
		fmt.Fprintln(table, strings.Join(narrow, "\t"))
	}
	rows := oneRow(templateRow)
	switch kind {
	case registry.Profiles:
		row([]string{"NAME", "WINDOW", "PRIORITY", "MAX CONCURRENCY", "TIER ALIAS", "DEFAULT"},
			"STORAGE", "MAX REQUESTS", "MAX INPUT", "MAX OUTPUT", "VISIBLE TO", "DOCUMENT")
		rows = oneRow(func(i *client.RegistryItem) (narrow, more []string, err error) {
			return profileRow(i, i.Name == standard)
		})
	case registry.UseCases:
		row([]string{"NAME", "MODEL", "CLASS", "OBJECTIVE", "TARGETS", "POOLS", "ACCEPTED"},
			"WEIGHT", "STICKY", "TENANTS", "DOCUMENT")
		rows = useCaseRows
	default:
		row([]string{"NAME", "VERSION", "STATUS", "MODEL", "ACCELERATOR", "MODE", "WARNINGS"},
			"ENGINE", "ENDPOINTS", "VISIBLE TO", "DOCUMENT")
	}
	for i := range items {
		all, err := rows(&items[i])
		if err != nil {
			return err
		}
		for _, of := range all {
			row(of.narrow, append(of.more, fmt.Sprintf("%s:%d", items[i].Document,
				items[i].Row))...)
		}
	}
	return table.Flush()
}

// itemRow is a row of a table: what it always has, and what a wide one has too.
type itemRow struct{ narrow, more []string }

// oneRow returns the function that makes the one row of a template or a profile.
func oneRow(
	make func(i *client.RegistryItem) (narrow, more []string, err error),
) func(i *client.RegistryItem) ([]itemRow, error) {
	return func(i *client.RegistryItem) ([]itemRow, error) {
		narrow, more, err := make(i)
		return []itemRow{{narrow, append(more, strings.Join(i.VisibleTo, ","))}}, err
	}
}

// useCaseRows returns a row for each use case of a set.
func useCaseRows(i *client.RegistryItem) (rows []itemRow, err error) {
	var s registry.UseCaseSetSpec
	if _, err := readKnown(i, &s); err != nil {
		return nil, err
	}
	name := i.Name
	if i.Kept {
		name += " (last good)"
	}
	for _, u := range s.UseCases {
		objective, weight := "", ""
		if u.Objective != nil {
			objective = u.Objective.PerOutputToken
		}
		if u.Weight != nil {
			weight = fmt.Sprint(*u.Weight)
		}
		rows = append(rows, itemRow{
			[]string{name, u.ModelName, u.Class, objective, targetShares(u.TargetModels),
				poolsOf(s), acceptedText(i)},
			[]string{weight, u.Sticky, strings.Join(u.Tenants, ",")}})
	}
	return rows, nil
}

// targetShares lists targets with their weights, such as v1:20,v2:80.
func targetShares(targets []registry.TargetModel) string {
	var all []string
	for _, t := range targets {
		name := t.TargetModelName
		if len(targets) > 1 && t.Weight != nil {
			name += fmt.Sprintf(":%d", *t.Weight)
		}
		all = append(all, name)
	}
	return strings.Join(all, ",")
}

func poolsOf(s registry.UseCaseSetSpec) string {
	names := registry.UseCaseSet{Spec: s}.PoolNames()
	if len(names) == 0 {
		return "(all)"
	}
	return strings.Join(names, ",")
}

// acceptedText returns True or why a set waits.
func acceptedText(i *client.RegistryItem) string {
	for _, c := range i.Conditions {
		switch {
		case c.Type != "Accepted":
		case c.Status:
			return "True"
		default:
			return c.Reason
		}
	}
	return ""
}

func templateRow(i *client.RegistryItem) (narrow, more []string, err error) {
	var s registry.TemplateSpec
	if _, err := readKnown(i, &s); err != nil {
		return nil, nil, err
	}
	status := i.Status
	if i.Kept {
		status += " (last good)"
	}
	accelerator := fmt.Sprintf("%d x %s", s.Accelerator.Count, s.Accelerator.Type)
	if strings.EqualFold(s.Accelerator.Type, "cpu") {
		accelerator = "cpu"
	}
	warnings := ""
	if n := len(i.Warnings); n > 0 {
		warnings = fmt.Sprint(n)
	}
	return []string{i.Name, i.Version, status, s.ModelSource.URI, accelerator,
			string(s.DeploymentMode), warnings},
		[]string{s.Engine.Type + " " + s.Engine.Version, strings.Join(s.SupportedEndpoints, ",")},
		nil
}

func profileRow(i *client.RegistryItem, standard bool) (narrow, more []string, err error) {
	var s registry.ProfileSpec
	if _, err := readKnown(i, &s); err != nil {
		return nil, nil, err
	}
	name, isDefault, storage := i.Name, "", ""
	if i.Kept {
		name += " (last good)"
	}
	if standard {
		isDefault = "yes"
	}
	if s.Storage.Backend != "" {
		storage = s.Storage.Backend + ":" + s.Storage.Bucket
	}
	return []string{name, s.Scheduling.CompletionWindow, s.Scheduling.Priority,
			fmt.Sprint(s.Scheduling.MaxConcurrency), s.ServiceTierAlias, isDefault},
		[]string{storage, fmt.Sprint(s.Quota.MaxRequestsPerBatch),
			fmt.Sprintf("%d MB", s.Quota.MaxInputSizeMB),
			fmt.Sprintf("%d GB", s.Quota.MaxOutputSizeGB)}, nil
}
