// Command generate writes the configuration page to the file named by its argument. go generate
// runs it in package config.
package main

import (
	"fmt"
	"os"

	"github.com/tidefill/tidefill/config/internal/reference"
)

func main() {
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(path string) error {
	page, err := reference.Page("..")
	if err != nil {
		return err
	}
	return os.WriteFile(path, page, 0o644)
}
