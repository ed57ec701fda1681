package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/internal/filewatch"
)

// reloadConfig loads the configuration if its file has changed and is not being written any more,
// or if forced, and applies what can be applied at run time. A configuration that is refused
// changes nothing.
func (a *App) reloadConfig(ctx context.Context, forced bool) {
	if a.options.Load == nil || !a.reloads.due(forced) {
		return
	}
	changes, err := a.applyConfig(ctx)
	if err != nil {
		a.reloads.failed()
		var faults []string
		for _, fault := range config.Faults(err) {
			faults = append(faults, fault.Error())
		}
		a.log.ErrorContext(ctx, "configuration refused; the last good one stays in use",
			"file", a.options.ConfigFile, "error", strings.Join(faults, "; "))
		return
	}
	a.reloads.succeeded(changes)
	if forced || len(changes.Applied) > 0 {
		a.log.InfoContext(ctx, "configuration read again", "file", a.options.ConfigFile,
			"applied", rows(changes.Applied))
	}
	if len(changes.Restart) > 0 {
		a.log.WarnContext(ctx, "some changes of the configuration need a restart: restart to apply",
			"file", a.options.ConfigFile, "not_applied", rows(changes.Restart))
	}
	if len(changes.Applied) > 0 {
		a.logProtection(ctx, *a.running.Load())
	}
}

func rows(changes []config.Change) []string {
	rows := make([]string, len(changes))
	for i, c := range changes {
		rows[i] = c.String()
	}
	return rows
}

// applyConfig loads the configuration and applies its changes, all or none.
func (a *App) applyConfig(ctx context.Context) (config.Changes, error) {
	next, err := a.options.Load()
	if err != nil {
		return config.Changes{}, err
	}
	before := *a.running.Load()
	changes, err := config.Compare(before, next)
	if err != nil || len(changes.Applied) == 0 {
		return changes, err
	}
	now := before.Running(next)
	if err := now.Validate(); err != nil {
		return changes, fmt.Errorf("together with the values that need a restart: %w", err)
	}
	useKeys, err := a.prepareKeys(now)
	if err != nil {
		return changes, err
	}
	effective := a.kubernetes.withFound(now)
	apply, err := a.prepare(a.effective, effective)
	if err != nil {
		return changes, err
	}
	useKeys()
	apply(ctx)
	a.effective, a.found = effective, foundRunners{}
	a.running.Store(&now)
	return changes, nil
}

// prepareKeys loads the keys of a changed configuration, and returns the function that replaces
// those in use.
func (a *App) prepareKeys(now config.Config) (use func(), err error) {
	keys, err := a.loadKeys(now.Auth)
	if err != nil {
		return nil, err
	}
	if keys.Empty() && !a.keyless {
		return nil, errors.New("auth.keys_file: without it there would be no API key, and anyone " +
			"could use the API; keep a key, or restart the daemon without")
	}
	return func() {
		if !keys.Empty() {
			a.keyless = false
			a.keysFile = filewatch.New(now.Auth.KeysFile)
			a.api.SetKeys(keys)
		}
	}, nil
}

// prepare builds what other upstreams or a changed configuration need, but for keys, and returns
// the function that applies it.
func (a *App) prepare(before, now config.Config) (apply func(context.Context), err error) {
	configure, err := a.dispatcher.Prepare(dispatchSettings(now))
	if err != nil {
		return nil, err
	}
	read, err := a.prepareReader(before, now)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		a.options.LogLevel.Set(now.Log.Level)
		a.api.SetConfig(now.API)
		configure()
		a.scaling.configure(now)
		read(ctx)
	}, nil
}

// dispatchSettings returns the dispatcher's part of a configuration.
func dispatchSettings(cfg config.Config) dispatch.Settings {
	cfg.Dispatch.Drain = cfg.Shutdown.Drain
	cfg.Dispatch.WaitForModels = cfg.API.UnknownModels == api.WaitUnknownModels
	cfg.Dispatch.ScaledModels = map[string]string{}
	for _, p := range cfg.Pools {
		for _, m := range p.Models {
			cfg.Dispatch.ScaledModels[m] = p.Name
		}
	}
	return dispatch.Settings{Config: cfg.Dispatch, Upstreams: cfg.Upstreams,
		Scheduler: cfg.Scheduler, Flow: flowControl(cfg)}
}
