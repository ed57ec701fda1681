package main

import (
	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/config"
)

// settings are the --set flags of a command that reads the configuration.
type settings struct{ given []string }

func (s *settings) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.given, "set", nil,
		"set one `key.path=value` of the configuration, in YAML's syntax; may be repeated")
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
