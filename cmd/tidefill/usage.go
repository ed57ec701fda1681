package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidefill/tidefill/internal/suggest"
)

// integer is the value of a flag with an integer from min to max.
type integer struct {
	to       *int
	min, max int
}

func (i *integer) String() string {
	if i.to == nil { // as pflag makes one to find the default
		return "0"
	}
	return strconv.Itoa(*i.to)
}

func (i *integer) Type() string { return fmt.Sprintf("an integer from %d to %d", i.min, i.max) }

func (i *integer) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < i.min || n > i.max {
		return errors.New("give " + i.Type())
	}
	*i.to = n
	return nil
}

// explainFlagError says in words what the value of a flag must be.
func explainFlagError(_ *cobra.Command, err error) error {
	wrong := (*pflag.InvalidValueError)(nil)
	if !errors.As(err, &wrong) {
		return err
	}
	kind := wrong.GetFlag().Value.Type()
	expected := map[string]string{
		"int": "an integer", "int64": "an integer", "uint64": "an integer from 0 on",
		"float64": "a number", "period": "a time such as 10m, 24h or 7d",
		"moment":   "a time until now such as 24h or 7d, or a date such as 2026-11-01",
		"duration": "a time with its unit, such as 90s or 2h",
		"bool":     "true or false", "intSlice": "integers, separated by commas",
	}[kind]
	switch {
	case expected != "":
	case strings.HasPrefix(kind, "an "):
		expected = kind
	default:
		return err
	}
	return fmt.Errorf("--%s is %q; give %s", wrong.GetFlag().Name, wrong.GetValue(), expected)
}

// suggestCommands has a command, and those below it, refuse an unknown command with the one that
// has the nearest name, alias or word of SuggestFor.
func suggestCommands(cmd *cobra.Command) {
	for _, of := range cmd.Commands() {
		suggestCommands(of)
	}
	if !cmd.HasSubCommands() {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var known []string
		meant := map[string]string{}
		for _, of := range cmd.Commands() {
			if of.IsAvailableCommand() {
				known = append(append(append(known, of.Name()), of.Aliases...), of.SuggestFor...)
			}
			for _, word := range of.SuggestFor {
				meant[word] = of.Name()
			}
		}
		hint := ""
		if near := suggest.Nearest(args[0], known); near != "" {
			near = cmp.Or(meant[near], near)
			hint = fmt.Sprintf("; did you mean %s?", near)
		}
		return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), hint)
	}
}

// environmentTopic is the help of the environment variables.
func environmentTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "environment",
		Short: "Environment variables, and what goes first",
		Long: `Commands that call a daemon read:

  TIDEFILL_SERVER      the URL of the API (--server)
  TIDEFILL_API_KEY     the API key (--api-key)
  TIDEFILL_TENANT      the tenant to act for, with a key of the role admin (--tenant)
  TIDEFILL_ADMIN       the URL of the admin address (--admin)
  TIDEFILL_CA_FILE     authorities to trust for https (--ca-file)
  TIDEFILL_CERT_FILE   the client certificate (--cert-file)
  TIDEFILL_KEY_FILE    its private key (--key-file)
  TIDEFILL_CONTEXT     the context to use (--context)
  OPENAI_BASE_URL      the URL of the API, where nothing else names one, unless it is OpenAI's own
  OPENAI_API_KEY       the API key for OPENAI_BASE_URL
  XDG_CONFIG_HOME      the directory with tidefill/contexts.yaml
  NO_COLOR             not empty: no colors on terminals

Flags go first, then the context of --context or TIDEFILL_CONTEXT, then TIDEFILL_ variables, then the current context (tidefill context
use), then OPENAI_ variables. A flag or variable that names a server leaves the current context aside, with its key.

tidefill serve reads:

  TIDEFILL_API_KEYS    the keys that may use the API, a comma-separated list of key or tenant=key. Mind the S: TIDEFILL_API_KEY is
                       that of a client

and variables that the configuration names, such as those of secrets (docs/configuration.md).`,
	}
}
