package app_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
)

// A program runs the daemon as a part of its own and drains it on Ctrl-C.
func Example() {
	cfg, err := config.Load("tidefill.yaml")
	if err != nil {
		log.Fatal(err)
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	daemon, err := app.New(cfg, app.Options{
		Reload: hangup,
		Ready:  func() { fmt.Println("ready") },
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := daemon.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
