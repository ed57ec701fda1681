package app_test

import (
	"net"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/apptest"
)

func TestAnAddressInUseNamesItsKey(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	for remedy, set := range map[string]func(*config.Config){
		"; choose another address for listen": func(c *config.Config) { c.Listen = address },
		"; choose another admin_listen":       func(c *config.Config) { c.AdminListen = address },
	} {
		cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
		set(&cfg)
		opened, err := app.New(cfg, app.Options{})
		if err == nil {
			opened.Close()
		}
		if err == nil || !strings.Contains(err.Error(), address) ||
			!strings.HasSuffix(err.Error(), remedy) {
			t.Errorf("got %v, want %q", err, remedy)
		}
	}
}
