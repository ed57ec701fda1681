// Command generate writes the pages about configuration into the directory named by its argument.
// go generate runs it in package config.
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
	for name, render := range reference.Pages() {
		page, err := render("..")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), page, 0o644); err != nil {
			return err
		}
	}
	return nil
}
