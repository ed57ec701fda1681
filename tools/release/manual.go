package main

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	// heading begins a section of a help text.
	heading = regexp.MustCompile(`^([A-Z][A-Za-z ]*):$`)
	// flagRow is a flag of a help text, with its value and what it does.
	flagRow = regexp.MustCompile(`^ +(-\w, )?(--[\w-]+)( \S+)? {2,}(\S.*)$`)
	// nameRow is a command or a variable of a help text, and what it does.
	nameRow = regexp.MustCompile(`^  ((?:tidefill )?\S+) +(\S.*)$`)
)

// section is a part of a help text. That before the first heading has no title.
type section struct {
	title string
	rows  []string
}

// listsCommands reports whether each row names a command or topic that has a page of its own.
func (s section) listsCommands() bool {
	return s.title == "Available Commands" || s.title == "Additional help topics"
}

// manual returns the manual pages of all commands, by file name. They are made of the help texts,
// so that the program need not contain them.
func (r *release) manual(path string) (map[string][]byte, error) {
	pages := map[string][]byte{}
	return pages, r.addPages(pages, path, []string{"tidefill"}, summary)
}

// addPages adds the page of a command and those of the commands below it.
func (r *release) addPages(
	pages map[string][]byte, path string, command []string, short string,
) error {
	help, err := output(path, append(command[1:len(command):len(command)], "--help")...)
	if err != nil {
		return err
	}
	sections := sectionsOf(help)
	related := []string{}
	if len(command) > 1 {
		related = append(related, strings.Join(command[:len(command)-1], "-"))
	}
	for _, s := range sections {
		if !s.listsCommands() {
			continue
		}
		for _, row := range s.rows {
			match := nameRow.FindStringSubmatch(row)
			if match == nil || match[1] == "help" || match[1] == "completion" {
				continue
			}
			words := strings.Fields(match[1])
			below := append(command[:len(command):len(command)], words[len(words)-1])
			related = append(related, strings.Join(below, "-"))
			if err := r.addPages(pages, path, below, match[2]); err != nil {
				return err
			}
		}
	}
	name := strings.Join(command, "-")
	pages[name+".1"] = []byte(r.page(name, short, sections, related))
	return nil
}

// sectionsOf divides a help text.
func sectionsOf(help string) []section {
	sections := []section{{}}
	for row := range strings.Lines(help) {
		row = strings.TrimRight(row, " \n")
		if match := heading.FindStringSubmatch(row); match != nil {
			sections = append(sections, section{title: match[1]})
			continue
		}
		if strings.HasPrefix(row, `Use "tidefill`) {
			break
		}
		last := &sections[len(sections)-1]
		last.rows = append(last.rows, row)
	}
	return sections
}

// page returns a manual page in the language of man.
func (r *release) page(name, short string, sections []section, related []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 %s %s Tidefill\n", strings.ToUpper(name),
		r.at.Format("2006-01-02"), escaped("tidefill "+r.version, true))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escaped(name, false), escaped(short, false))
	for _, s := range sections {
		switch s.title {
		case "":
			b.WriteString(".SH DESCRIPTION\n")
		case "Usage":
			b.WriteString(".SH SYNOPSIS\n")
		default:
			fmt.Fprintf(&b, ".SH %s\n", escaped(strings.ToUpper(s.title), true))
		}
		s.write(&b)
	}
	b.WriteString(".SH SEE ALSO\n")
	for _, other := range related {
		fmt.Fprintf(&b, ".BR %s (1),\n", escaped(other, false))
	}
	fmt.Fprintf(&b, "%s\n", homepage)
	return b.String()
}

// write writes the rows of a section. Flags and commands become a list, rows that are indented stay
// as they are, and others are filled.
func (s section) write(b *strings.Builder) {
	asIs := false
	keep := func(keep bool) {
		if asIs != keep {
			b.WriteString(map[bool]string{true: ".PP\n.nf\n", false: ".fi\n"}[keep])
		}
		asIs = keep
	}
	for _, row := range s.rows {
		flag, name := flagRow.FindStringSubmatch(row), nameRow.FindStringSubmatch(row)
		switch {
		case row == "":
			keep(false)
			b.WriteString(".PP\n")
		case flag != nil:
			keep(false)
			fmt.Fprintf(b, ".TP\n\\fB%s%s\\fR\\fI%s\\fR\n%s\n", escaped(flag[1], false),
				escaped(flag[2], false), escaped(flag[3], false), escaped(flag[4], false))
		case name != nil && s.listsCommands():
			fmt.Fprintf(b, ".TP\n\\fB%s\\fR\n%s\n", escaped(name[1], false),
				escaped(name[2], false))
		case strings.HasPrefix(row, "  "):
			keep(true)
			fmt.Fprintf(b, "%s\n", escaped(row, false))
		default:
			keep(false)
			fmt.Fprintf(b, "%s\n", escaped(row, false))
		}
	}
	keep(false)
}

// escaped returns text so that man prints it as it is; quoted, as one argument of a macro.
func escaped(text string, quoted bool) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if quoted {
		return `"` + strings.ReplaceAll(text, `"`, `\(dq`) + `"`
	}
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
