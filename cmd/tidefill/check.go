package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/internal/humanize"
)

func checkCommand() *cobra.Command {
	var c check
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Find the errors in batch files, configurations, templates, profiles and use cases",
		Long: `Find every error in batch input files (JSONL) and in configurations, templates, profiles and use cases (.yaml, .yml), with line
numbers, without a daemon. For a valid configuration, print all keys with their effective values, without secrets. The files that it names, such as certificates and the
keys file, are read; nothing is sent, and no environment variable is needed.

A list of templates or of use case sets, a table with the items of profiles, a UseCaseSet, and a ConfigMap with templates.yaml, profiles.yaml or usecases.yaml
are recognized by what they contain. Those of one call are judged together, as the files of registry.dir are. Warnings name what is set and has no effect.

"-" is a batch file on standard input. Exit status 1 means that there are errors.`,
		Example: `  tidefill check requests.jsonl
  tidefill check tidefill.yaml --set scheduler.policy=edf
  tidefill check templates.yaml profiles.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.output.check(); err != nil {
				return err
			}
			c.in, c.out = cmd.InOrStdin(), cmd.OutOrStdout()
			c.registry = readRegistry(slices.DeleteFunc(slices.Clone(args), isNoYAML))
			invalid := 0
			for _, name := range args {
				valid, err := c.file(name)
				if err != nil {
					return err
				}
				if !valid {
					invalid++
				}
			}
			if invalid > 0 {
				return exit{status: exitError}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&c.endpoint, "endpoint", "",
		"the `url` that every line must have (default: that of the first line)")
	c.output.register(cmd, objectFormats)
	c.set.register(cmd)
	return cmd
}

type check struct {
	output   // of batch files and of files of the registry
	endpoint string
	set      settings
	registry registryCheck
	in       io.Reader
	out      io.Writer
}

func isNoYAML(name string) bool {
	extension := strings.ToLower(filepath.Ext(name))
	return extension != ".yaml" && extension != ".yml"
}

func (c *check) file(name string) (valid bool, err error) {
	switch {
	case name == "-":
		return c.batch("standard input", c.in)
	case slices.Contains(c.registry.names, name):
		return c.registry.file(c, name)
	case !isNoYAML(name):
		return c.configuration(name)
	}
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return c.batch(name, f)
}

func (c *check) configuration(name string) (valid bool, err error) {
	settings, err := c.set.parse()
	if err != nil {
		return false, err
	}
	cfg, err := config.Check(name, app.CheckFiles, settings...)
	if err != nil {
		if text, readErr := os.ReadFile(name); readErr == nil {
			if note := unclear(text); note != "" {
				printf(c.out, "%s: %s\n", name, note)
			}
		}
		for _, err := range config.Faults(err) {
			printError(c.out, "", err)
		}
		return false, nil
	}
	effective, err := cfg.ShownYAML()
	if err != nil {
		return false, err
	}
	note := ""
	if len(cfg.Upstreams) == 0 && len(cfg.Pools) == 0 { // flags may add them
		note = "# It lists no upstreams and no pools: serve needs --upstream URL beside it.\n"
	}
	printf(c.out, "# %s is valid. Effective values:\n", name)
	_, err = io.WriteString(c.out, note+string(effective))
	return true, err
}

// batch runs the checks that the daemon runs on upload and on creating a batch.
func (c *check) batch(name string, in io.Reader) (valid bool, err error) {
	var index bytes.Buffer
	scanner := batchfile.NewScanner(&index, batchfile.Limits{})
	if _, err := io.Copy(scanner, bufio.NewReaderSize(in, 1<<20)); err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	summary, err := scanner.Finish()
	if err != nil {
		return false, fmt.Errorf("check %s: %w", name, err)
	}
	if len(summary.URLs) > 0 {
		lines, err := batchfile.OpenIndex(bytes.NewReader(index.Bytes()), int64(index.Len()))
		if err != nil {
			return false, fmt.Errorf("check %s: %w", name, err)
		}
		endpoint := cmp.Or(c.endpoint, summary.URLs[0].URL)
		mismatched, err := batchfile.MismatchedLines(lines, endpoint, lines.Len())
		if err != nil {
			return false, fmt.Errorf("check %s: %w", name, err)
		}
		summary.FaultCount += len(mismatched)
		summary.Faults = append(summary.Faults, mismatched...)
	}
	return summary.FaultCount == 0, c.print(c.out, struct {
		File string `json:"file"`
		batchfile.Summary
	}{name, summary}, func(out io.Writer) error { return printSummary(out, name, summary) })
}

// printSummary prints the faults and the content of a batch file for people.
func printSummary(out io.Writer, name string, s batchfile.Summary) error {
	w := bufio.NewWriter(out)
	for _, fault := range s.Faults {
		if fault.Line > 0 {
			printf(w, "%s:%d: %s (%s)\n", name, fault.Line, fault.Message, fault.Code)
		} else {
			printf(w, "%s: %s (%s)\n", name, fault.Message, fault.Code)
		}
	}
	if more := s.FaultCount - len(s.Faults); more > 0 {
		printf(w, "%s: %d more errors\n", name, more)
	}
	printf(w, "%s: %s, %s, %s\n", name, humanize.Count(s.Lines, "line"),
		humanize.Bytes(s.Bytes),
		humanize.Count(s.FaultCount, "error"))
	for _, m := range s.Models {
		printf(w, "  model %s: %s\n", cmp.Or(m.Name, "left to the endpoint"),
			humanize.Count(m.Lines, "line"))
	}
	for _, u := range s.URLs {
		printf(w, "  url %s: %s\n", u.URL, humanize.Count(u.Lines, "line"))
	}
	return w.Flush()
}
