package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/httpserver"
)

// CheckFiles reads the files that a configuration names and a daemon reads at its start, and
// reports every fault with the path of the key. It starts nothing, writes nothing, sends nothing
// and reads no environment variable.
func CheckFiles(cfg config.Config) error {
	var faults []error
	add := func(prefix string, err error) {
		for _, fault := range config.Faults(err) {
			faults = append(faults, fmt.Errorf("%s%w", prefix, fault))
		}
	}
	if cfg.Auth.KeysFile != "" {
		_, err := api.LoadKeys(cfg.Auth.KeysFile)
		add("auth.keys_file: ", err)
	}
	add("tls: ", checkCertificates(cfg.TLS))
	if names, has := cfg.Store.Settings[cfg.Store.Backend].(namesFiles); has {
		add("store."+cfg.Store.Backend+".", names.CheckFiles())
	}
	add("record: ", checkDirectoryOf(cfg.Record))
	if cfg.Has(config.RoleDispatch) {
		add("telemetry.", telemetryOf(cfg).CheckFiles())
	}
	if cfg.Registry.Kubernetes.Enabled() || cfg.Has(config.RoleDispatch) &&
		(inKubernetes(cfg.Pools, false) || inKubernetes(cfg.Pools, true)) {
		add("", cfg.Kubernetes.CheckFiles())
	}
	if scaler := cfg.Scaler; scaler.Listen != "" && cfg.Has(config.RoleScale) {
		add("scaler.tls: ", checkCertificates(scaler.TLS))
	}
	return errors.Join(faults...)
}

// namesFiles is the configuration of a store that names files.
type namesFiles interface{ CheckFiles() error }

func checkCertificates(cfg httpserver.TLSConfig) error {
	if !cfg.Enabled() {
		return nil
	}
	_, err := httpserver.LoadCertificates(cfg)
	return err
}

// checkDirectoryOf reports whether a file could be created; an empty name is none.
func checkDirectoryOf(name string) error {
	if name == "" {
		return nil
	}
	if of, err := os.Stat(name); err == nil && of.IsDir() {
		return fmt.Errorf("%s is a directory; name a file", name)
	}
	_, err := os.Stat(filepath.Dir(name))
	return err
}
