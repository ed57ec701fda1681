// Command generate writes the table of metrics into the page named by its argument. go generate
// runs it in package app.
package main

import (
	"fmt"
	"os"

	"github.com/tidefill/tidefill/internal/metriclist"
)

func main() {
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(name string) error {
	metrics, err := metriclist.List()
	if err != nil {
		return err
	}
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if page, err = metriclist.Update(page, metrics); err != nil {
		return err
	}
	return os.WriteFile(name, page, 0o644)
}
