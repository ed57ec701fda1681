package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/config"
)

// settings are the --set flags of a command that reads the configuration.
type settings struct{ given []string }

func (s *settings) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.given, "set", nil,
		"set one `key.path=value` of the configuration, in YAML's syntax; may be repeated")
	completeSettings(cmd)
}

// completeSettings offers keys of the configuration for --set.
func completeSettings(cmd *cobra.Command) {
	err := cmd.RegisterFlagCompletionFunc("set", func(*cobra.Command, []string, string) (
		keys []string, _ cobra.ShellCompDirective) {
		for _, key := range config.Keys() {
			if !strings.ContainsAny(key.Path, "[<") {
				keys = append(keys, key.Path+"=")
			}
		}
		return keys, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag does not exist
	}
}

func (s *settings) parse() ([]config.Setting, error) {
	var parsed []config.Setting
	for _, given := range s.given {
		setting, err := config.ParseSetting(given)
		if err != nil {
			return nil, exit{exitUsage, err}
		}
		parsed = append(parsed, setting)
	}
	return parsed, nil
}
