package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	shellBlock  = regexp.MustCompile("(?s)\n *```sh\n(.*?)```")
	inlineCode  = regexp.MustCompile("`([^`]+)`")
	programName = regexp.MustCompile(`^(?:\./|go run \./cmd/)?tidefill( |$)`)
	// shellWord is an argument as a shell splits them, as far as the manual needs it.
	shellWord = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+`)
)

// commandsOf returns the commands of the program that a page has in blocks or within sentences.
func commandsOf(page string) (commands []string) {
	add := func(line string) {
		line = regexp.MustCompile(`^([A-Z_]+=\S+ +)+`).ReplaceAllString(line, "")
		if programName.MatchString(line) {
			// What follows the command is no part of it.
			line = regexp.MustCompile(` +(#|\||\|\||&&|&|;|>|2>|<)( .*|$)`).ReplaceAllString(line, "")
			commands = append(commands, programName.ReplaceAllString(line, ""))
		}
	}
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		text := strings.ReplaceAll(block[1], "\\\n", " ")
		for _, line := range strings.Split(text, "\n") {
			for _, part := range strings.Split(line, "$(") {
				add(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(part), `)"`)))
			}
		}
	}
	for _, code := range inlineCode.FindAllStringSubmatch(shellBlock.ReplaceAllString(page, ""),
		-1) {
		add(code[1])
	}
	return commands
}

// parse finds the command and parses its flags, without running it.
func parse(line string) error {
	args := shellWord.FindAllString(line, -1)
	for i := range args {
		args[i] = strings.Trim(strings.NewReplacer(`'`, "", `"`, "").Replace(args[i]), "…")
	}
	root := rootCommand()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	if len(args) > 0 && args[0] == strings.ToUpper(args[0]) {
		return nil // COMMAND stands for one
	}
	command, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if !command.Runnable() && !command.HasSubCommands() {
		return nil // a topic of help
	}
	var complete cobra.Command
	complete.Flags().AddFlagSet(command.Flags())
	complete.Flags().AddFlagSet(command.InheritedFlags())
	complete.Flags().BoolP("help", "h", false, "")
	complete.Flags().ParseErrorsAllowlist = pflag.ParseErrorsAllowlist{}
	err = complete.ParseFlags(rest)
	if err == nil && command.HasSubCommands() && complete.Flags().NArg() > 0 &&
		command.Name() != "help" && !command.Runnable() {
		err = fmt.Errorf("%s has no command %q", command.CommandPath(), complete.Flags().Arg(0))
	}
	return err
}

// Every command that the manual names exists, with these flags.
func TestCommandsOfTheManual(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/designs/*.md",
		"simulator/lab/docs/*.md", "deploy/*/*.md", "deploy/*/*/*.md", "examples/*.md",
		"examples/*/*.md"} {
		found, err := filepath.Glob("../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	known := 0
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandsOf(string(page)) {
			known++
			if err := parse(line); err != nil {
				t.Errorf("%s: tidefill %s: %v", strings.TrimPrefix(path, "../../"), line, err)
			}
		}
	}
	if known < 150 {
		t.Errorf("%d commands were found; the pages are not read as they were", known)
	}
}
