package app

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/httpserver"
)

// loadKeys joins the keys of the options with those of the keys file. It refuses to serve an
// address that other machines reach without any key.
func (a *App) loadKeys(auth config.Auth) (*api.Keyring, error) {
	keys := a.options.Keys
	if file := auth.KeysFile; file != "" {
		fromFile, err := api.LoadKeys(file)
		if err != nil {
			return nil, fmt.Errorf("auth.keys_file: %w", err)
		}
		if keys, err = keys.Join(fromFile); err != nil {
			return nil, err
		}
	}
	if keys.Empty() && !auth.InsecureNoAuth && !httpserver.IsLoopback(a.apiAddress()) {
		return nil, fmt.Errorf(
			"listen is %s, which other machines reach, and there are no API keys: "+
				"set %s or auth.keys_file, or serve anyone with --insecure-no-auth",
			a.apiAddress(), api.KeysVariable)
	}
	return keys, nil
}

// apiAddress is the address that the API is served on, before or after it listens.
func (a *App) apiAddress() string {
	if a.listener != nil {
		return a.listener.Addr().String()
	}
	return a.cfg.Listen
}

// reloadedKeys is loadKeys for a running daemon, which reads no pipe: it would wait for its writer.
func (a *App) reloadedKeys(auth config.Auth) (*api.Keyring, error) {
	if auth.KeysFile != "" {
		if err := config.CheckRegular(auth.KeysFile); err != nil {
			return nil, fmt.Errorf("auth.keys_file: %w", err)
		}
	}
	return a.loadKeys(auth)
}

// reloadKeys reads the keys file again if it has changed, or if forced.
func (a *App) reloadKeys(ctx context.Context, forced bool) {
	auth, s := a.running.Load().Auth, &a.reloads.keys
	if auth.KeysFile == "" {
		a.reloads.accept(s)
		return
	}
	due, retried := a.due(ctx, s, auth.KeysFile, a.keysFile, forced)
	if !due {
		return
	}
	keys, err := blockable(ctx, a, auth.KeysFile, func() (*api.Keyring, error) {
		return a.reloadedKeys(auth)
	})
	if err != nil {
		a.refuse(ctx, s, retried, "keys file refused; the keys of its last version stay valid",
			auth.KeysFile, err.Error())
		return
	}
	repaired := a.reloads.accept(s)
	if added, revoked := a.api.SetKeys(keys); forced || repaired || added+revoked > 0 {
		a.log.InfoContext(ctx, "keys file read again", "added", added, "revoked", revoked)
	}
}
