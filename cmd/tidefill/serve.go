package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/hangup"
)

func serveCommand() *cobra.Command {
	var file string
	var upstreams []string
	var sets settings
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long: `Run the daemon. With --upstream, no configuration file is needed; the models are those that the upstreams list.

API keys are read from TIDEFILL_API_KEYS, a comma-separated list of key or tenant=key, and from auth.keys_file. Without keys only
a loopback address is served.

SIGTERM and Ctrl-C drain: lines in flight may finish within shutdown.drain, the others continue after the next start. A second
signal ends the process at once and loses nothing either. SIGHUP reads the configuration file and the files of keys and certificates
again; they are also read when they change.

tidefill help environment lists the variables that are read.`,
		Example: `  tidefill serve --upstream http://gpu-1:8000 --upstream http://gpu-2:8000
  tidefill serve --config tidefill.yaml --set flowcontrol.policy=fixed --set flowcontrol.fixed.per_runner=100`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&file, "config", "", "the configuration `file`")
	flags.StringArrayVar(&upstreams, "upstream", nil,
		"base `URL` of an OpenAI-compatible model server; may be repeated, replaces the file's")
	defaults := config.Default()
	keys := map[string]string{ // by flag
		"listen":           "listen",
		"admin-listen":     "admin_listen",
		"data":             "data",
		"node":             "node",
		"log-level":        "log.level",
		"insecure-no-auth": "auth.insecure_no_auth",
		"record":           "record",
	}
	flags.String("listen", defaults.Listen, "`address` of the API")
	flags.String("admin-listen", defaults.AdminListen,
		"`address` of health, metrics and profiles; empty: none")
	flags.String("data", defaults.Data, "`directory` of files and results")
	flags.String(
		"node", "", "`name` of this daemon among those that share a store (default: the host's "+
			"name)")
	flags.String("log-level", "info", "`level`: debug, info, warn or error")
	flags.Bool("insecure-no-auth", false, "serve anyone on a non-loopback address without keys")
	flags.String(
		"record", "", "record to this `FILE` what a simulation of this pool needs; no prompts, no "+
			"names")
	roles := flags.StringSlice("roles", nil,
		"`list` of what this process does: api, dispatch, scale (default: all)")
	sets.register(cmd)
	completeFlags(cmd, map[string][]string{"log-level": {"debug", "info", "warn", "error"},
		"roles": {"api", "dispatch", "scale"}})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		settings, err := sets.parse()
		if err != nil {
			return err
		}
		for _, flag := range sortedKeys(keys) {
			if f := flags.Lookup(flag); f.Changed && f.Value.Type() == "bool" {
				settings = append(settings, setting(flag, keys[flag], f.Value.String() == "true"))
			} else if f.Changed {
				settings = append(settings, setting(flag, keys[flag], f.Value.String()))
			}
		}
		if flags.Changed("roles") {
			settings = append(settings, setting("roles", "roles", *roles))
		}
		if len(upstreams) > 0 {
			var list []map[string]string
			for _, url := range upstreams {
				list = append(list, map[string]string{"url": url})
			}
			settings = append(settings, setting("upstream", "upstreams", list))
		}
		source := &config.File{Path: file, Settings: settings}
		cfg, again, err := loadUntil(cmd.Context(), source)
		if err != nil {
			return err
		}
		options := app.Options{Reload: hangup.Signals(), Locate: source.Locate}
		if again {
			options.ConfigFile = file
			options.Load = func() (config.Config, error) { return withUpstreams(source.Reload()) }
		}
		return runDaemon(cmd.Context(), cfg, cmd.ErrOrStderr(), options)
	}
	return cmd
}

// loadUntil loads the configuration, and reports whether it has a file that can be read again,
// which a pipe cannot. If ctx ends before, it leaves the read alone: nothing can interrupt one of a
// pipe that nobody writes, or of a file system that does not answer.
func loadUntil(
	ctx context.Context, source *config.File,
) (cfg config.Config, again bool, err error) {
	done := make(chan struct{})
	var loaded config.Config
	var regular bool
	var fault error
	go func() {
		defer close(done)
		regular = source.Path != "" && config.CheckRegular(source.Path) == nil
		loaded, fault = withUpstreams(source.Load())
	}()
	select {
	case <-done:
		return loaded, regular, fault
	case <-ctx.Done():
		return cfg, false, fmt.Errorf("read configuration %s: stopped before it could be read",
			source.Path)
	}
}

// setting returns the setting of a flag. Its value is JSON, which is valid YAML.
func setting(flag, path string, value any) config.Setting {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // strings and lists of maps of strings can be encoded
	}
	return config.Setting{Origin: "--" + flag, Path: path, Value: string(encoded)}
}

// withUpstreams returns the loaded configuration, or an error if no line can ever be sent: there is
// no upstream, and no pool whose runners come later.
func withUpstreams(cfg config.Config, err error) (config.Config, error) {
	if err == nil && len(cfg.Upstreams) == 0 && len(cfg.Pools) == 0 {
		err = errors.New("there is no upstream to send lines to; give --upstream URL, " +
			"or list some under upstreams, or pools, in the configuration")
	}
	return cfg, err
}

func runDaemon(
	ctx context.Context, cfg config.Config, stderr io.Writer, options app.Options,
) error {
	keys, err := api.ParseKeys(os.Getenv(api.KeysVariable))
	if err != nil {
		return err
	}
	app.TuneCollector(cfg)
	options.LogLevel = new(slog.LevelVar)
	options.LogLevel.Set(cfg.Log.Level)
	options.Logger = newLogger(cfg.Log.Format, options.LogLevel, stderr)
	if keys.Empty() && cfg.Auth.KeysFile == "" && os.Getenv("TIDEFILL_API_KEY") != "" {
		options.Logger.Warn("TIDEFILL_API_KEY is what clients send; this daemon asks for no key",
			"remedy", "give its keys by "+api.KeysVariable+" or auth.keys_file")
	}
	options.Version, options.Keys = version(), keys
	options.Stop = ctx.Done()
	daemon, err := app.New(cfg, options)
	if err != nil {
		if options.Locate != nil {
			err = options.Locate(err)
		}
		return err
	}
	return daemon.Run(ctx)
}
