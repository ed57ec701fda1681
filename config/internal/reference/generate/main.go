// Command generate writes the page about the configuration into the directory that its argument
// names. go generate runs it in package config.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidefill/tidefill/config/internal/reference"
)

func main() {
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(dir string) error {
	page, err := reference.Page("..")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "configuration.md"), page, 0o644)
}
