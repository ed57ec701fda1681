package config_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/store"
)

// ledgerConfig is the configuration of a backend of another module.
type ledgerConfig struct {
	// Address is where the ledger is.
	Address string `yaml:"address"`
}

func (c ledgerConfig) Validate() error {
	if !strings.Contains(c.Address, ":") {
		return errors.New("address: must be host:port")
	}
	return nil
}

func init() {
	store.RegisterBackend("ledger", store.BackendFactory{
		Default: ledgerConfig{Address: "127.0.0.1:1"},
		Open: func(context.Context, store.OpenOptions) (*store.Backend, error) {
			return nil, errors.New("there is no ledger in this test")
		},
		Migrate: func(context.Context, store.OpenOptions, bool) (m store.Migration, err error) {
			return m, errors.New("there is no ledger in this test")
		},
	})
}

func TestBackendHasSettingsOfItsOwn(t *testing.T) {
	cfg, err := config.Parse("tidefill.yaml",
		[]byte("store: {backend: ledger, ledger: {address: 'ledger:7'}}"))
	if err != nil {
		t.Fatal(err)
	}
	if own := cfg.Store.Settings["ledger"]; own != (ledgerConfig{Address: "ledger:7"}) {
		t.Errorf("the settings of the backend are %+v", own)
	}
	if own := config.Default().Store.Settings["ledger"]; own != (ledgerConfig{"127.0.0.1:1"}) {
		t.Errorf("the defaults changed to %+v", own)
	}
	for file, want := range map[string]string{
		"store: {ledger: {address: nowhere}}": "store.ledger.address: must be host:port",
		"store: {ledger: {adress: 'a:1'}}":    "did you mean store.ledger.address?",
		"store: {leger: {address: 'a:1'}}":    "did you mean store.ledger?",
	} {
		if _, err := config.Parse("tidefill.yaml", []byte(file)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", file, err, want)
		}
	}
}
