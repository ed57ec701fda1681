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
			return nil, err
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

// reloadKeys reads the keys file again if it has changed, or if forced.
func (a *App) reloadKeys(ctx context.Context, forced bool) {
	auth := a.running.Load().Auth
	if auth.KeysFile == "" || !a.keysFile.Changed() && !forced {
		return
	}
	keys, err := a.loadKeys(auth)
	if err != nil {
		a.log.ErrorContext(ctx, "keys file refused; the keys of its last version stay valid",
			"error", err)
		return
	}
	if added, revoked := a.api.SetKeys(keys); forced || added+revoked > 0 {
		a.log.InfoContext(ctx, "keys file read again", "added", added, "revoked", revoked)
	}
}
