package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/internal/filewatch"
)

// reloadConfig loads the configuration if its file has changed and is not being written any more,
// or if forced, and applies what can be applied at run time. A configuration that is refused
// changes nothing.
func (a *App) reloadConfig(ctx context.Context, forced bool) {
	file := a.options.ConfigFile
	if a.options.Load == nil {
		if forced {
			a.log.InfoContext(ctx, "there is no configuration file to read again; the files of "+
				"keys, certificates and signals are")
		}
		return
	}
	type turn struct{ due, retried bool }
	next, err := blockable(ctx, a, file, func() (turn, error) {
		due, retried := a.reloads.due(forced, time.Now())
		return turn{due, retried}, nil
	})
	if err != nil || !next.due {
		return
	}
	changes, err := a.applyConfig(ctx)
	if err != nil {
		a.refuse(ctx, &a.reloads.config, next.retried,
			"configuration refused; the last good one stays in use", file, inOneRow(err))
		return
	}
	repaired := a.reloads.succeeded(changes)
	switch {
	case forced || len(changes.Applied) > 0:
		a.log.InfoContext(ctx, "configuration read again", "file", file,
			"applied", rows(changes.Applied))
	case repaired:
		a.log.InfoContext(ctx, "the configuration that was refused can be used now; nothing of "+
			"it had to be applied", "file", file)
	}
	if len(changes.Restart) > 0 {
		a.log.WarnContext(ctx, "some changes of the configuration need a restart: restart to apply",
			"file", file, "not_applied", rows(changes.Restart))
	}
	if len(changes.Applied) > 0 {
		a.logProtection(ctx, *a.running.Load())
	}
}

func inOneRow(err error) string {
	var faults []string
	for _, fault := range config.Faults(err) {
		faults = append(faults, fault.Error())
	}
	return strings.Join(faults, "; ")
}

func rows(changes []config.Change) []string {
	rows := make([]string, len(changes))
	for i, c := range changes {
		rows[i] = c.String()
	}
	return rows
}

// applyConfig loads the configuration and applies its changes, all or nothing.
func (a *App) applyConfig(ctx context.Context) (config.Changes, error) {
	next, err := blockable(ctx, a, a.options.ConfigFile, a.options.Load)
	if err != nil {
		return config.Changes{}, err
	}
	changes, err := a.apply(ctx, next)
	if err != nil && a.options.Locate != nil {
		err = a.options.Locate(err)
	}
	return changes, err
}

// apply applies what another configuration changes, all or nothing.
func (a *App) apply(ctx context.Context, next config.Config) (config.Changes, error) {
	running := *a.running.Load()
	changes, err := config.Compare(running, next)
	if err != nil || len(changes.Applied) == 0 {
		return changes, err
	}
	now := running.Running(next)
	if err := validTogether(now, changes.Restart); err != nil {
		return changes, err
	}
	if err := checkKeys(now.Upstreams); err != nil {
		return changes, err
	}
	useKeys, err := blockable(ctx, a, now.Auth.KeysFile, func() (func(), error) {
		return a.prepareKeys(now)
	})
	if err != nil {
		return changes, err
	}
	pooled, _ := a.withPools(now)
	before, effective := a.effective, a.withFound(pooled)
	apply, err := blockable(ctx, a, a.options.ConfigFile,
		func() (func(context.Context), error) { return a.prepare(before, effective) })
	if err != nil {
		return changes, err
	}
	follow, err := a.kubernetes.prepare(pooled)
	if err != nil {
		return changes, err
	}
	useKeys()
	apply(ctx)
	follow()
	a.effective, a.found = effective, foundRunners{}
	a.running.Store(&now)
	return changes, nil
}

// validTogether reports what makes the changes that are applied useless without those that need a
// restart. The daemon then runs on as it is.
func validTogether(now config.Config, restart []config.Change) error {
	err := now.Validate()
	if err == nil {
		return nil
	}
	var names []string
	for _, c := range restart {
		names = append(names, c.Path)
	}
	var faults []error
	for _, fault := range config.Faults(err) {
		faults = append(faults, fmt.Errorf("%w; the file is valid only together with what needs a "+
			"restart (%s): restart to apply it", fault, strings.Join(names, ", ")))
	}
	return errors.Join(faults...)
}

// prepareKeys loads the keys of a changed configuration, and returns the function that replaces
// those in use.
func (a *App) prepareKeys(now config.Config) (use func(), err error) {
	keys, err := a.reloadedKeys(now.Auth)
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
		if a.inline != nil {
			a.inline.SetConfig(now.Inline)
		}
		configure()
		a.buckets.Configure(now.Buckets)
		a.scaling.configure(now)
		read(ctx)
	}, nil
}

// checkKeys reports upstreams whose keys can't be read, with the path of the setting.
func checkKeys(upstreams []dispatch.Upstream) error {
	var faults []error
	for i, u := range upstreams {
		if _, err := u.AskHeader(); err != nil {
			faults = append(faults, fmt.Errorf("upstreams[%d].api_key_env: %w", i, err))
		}
	}
	return errors.Join(faults...)
}

// dispatchSettings returns the dispatcher's part of a configuration.
func dispatchSettings(cfg config.Config) dispatch.Settings {
	cfg.Dispatch.Drain = cfg.Shutdown.Drain
	cfg.Dispatch.Inline = inlineSettings(cfg)
	cfg.Dispatch.WaitForModels = cfg.API.UnknownModels == api.WaitUnknownModels
	return dispatch.Settings{Config: cfg.Dispatch, Upstreams: cfg.SentUpstreams(),
		Scheduler: cfg.Scheduler, Registry: cfg.Snapshot()}
}
