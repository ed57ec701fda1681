package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// question is a heading of docs/faq.md with its command and what that prints.
type question struct{ title, command, output string }

// questions reads the page. Each question has one command and one output.
func questions(t *testing.T) (list []question) {
	t.Helper()
	page, err := os.ReadFile("../docs/faq.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```(sh|text)\n(.*?)```")
	for _, section := range strings.Split(string(page), "\n### ")[1:] {
		q := question{title: strings.SplitN(section, "\n", 2)[0]}
		for _, b := range block.FindAllStringSubmatch(section, -1) {
			at := &q.command
			if b[1] == "text" {
				at = &q.output
			}
			if *at != "" {
				t.Errorf("%q has two blocks of %s", q.title, b[1])
			}
			*at = strings.TrimSpace(b[2])
		}
		if q.command == "" || strings.Contains(q.command, "\n") || q.output == "" {
			t.Errorf("%q needs one command and one output", q.title)
		}
		list = append(list, q)
	}
	return list
}

// variable is what differs from run to run: ids, keys, times, numbers with their units. A comma
// behind a number is not part of it.
var variable = []struct {
	what *regexp.Regexp
	word string
}{
	{regexp.MustCompile(`\b(batch_|file-|req_|tf-|sha256:)\w+`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\d([\d,.:]*\d)?( ?(s|ms|m|h|d|B|KiB|MiB|GiB|lines/s|/s)\b)*`), "N"},
	{regexp.MustCompile(`N( ?N)+`), "N"},
	{regexp.MustCompile(`\s+`), " "},
}

func general(line string) string {
	for _, v := range variable {
		line = v.what.ReplaceAllString(line, v.word)
	}
	return strings.TrimSpace(line)
}

// checkPrinted requires the lines of want in got, in that order. An ellipsis stands for anything.
func checkPrinted(got, want string) error {
	printed := strings.Split(got, "\n")
	for _, line := range strings.Split(want, "\n") {
		var parts []string
		for _, part := range strings.Split(general(line), "…") {
			parts = append(parts, regexp.QuoteMeta(strings.TrimSpace(part)))
		}
		pattern := regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
		for {
			if len(printed) == 0 {
				return fmt.Errorf("no line %q", line)
			}
			found := pattern.MatchString(general(printed[0]))
			printed = printed[1:]
			if found {
				break
			}
		}
	}
	return nil
}

// Every command of docs/faq.md answers its question, on a daemon with users, a completed batch, one
// with failed lines, one that runs, and another tenant's.
func TestFrequentQuestions(t *testing.T) {
	t.Parallel()
	var upstreams []string
	for i := range 2 {
		upstreams = append(upstreams, startRunner(t, freeAddress(t), "--profile",
			"llama-8b-a100", "--model", "m", "--interactive-rps", "1", "--seed", fmt.Sprint(i)))
	}
	u := newReader(t)
	data := filepath.Join(u.dir, "data")
	keys := u.write("keys.yaml", "keys:\n  - {hash: \"sha256:"+Digest([]byte("operator"))+
		"\", tenant: default, role: admin}\n")
	config := u.write("tidefill.yaml", "data: "+data+"\nauth: {keys_file: "+keys+"}\n")
	u.write("requests.jsonl", short(400))
	u.write("small.jsonl", short(3))
	u.write("failing.jsonl", short(38)+strings.ReplaceAll(short(2), `"content":`,
		`"content":7,"name":`))
	u.write("nightly.jsonl", short(20000))
	u.daemon = NewDaemon(t, Options{Admin: freeAddress(t), Data: data, Upstreams: upstreams,
		Set:  []string{"flowcontrol.policy=fixed", "flowcontrol.fixed.per_runner=8"},
		Args: []string{"--config", config}})
	u.environment = []string{"TIDEFILL_API_KEY=operator"}
	await(t, time.Minute, "both servers are read", func() bool {
		output, err := u.run("tidefill explain")
		return err == nil && strings.Contains(output, "of 2 of 2 runners")
	})
	for _, line := range []string{
		"tidefill batch submit small.jsonl --wait", // an earlier batch that completed
		"tidefill batch submit failing.jsonl --wait || [ $? = 4 ]",
		"tidefill batch submit nightly.jsonl --meta project=nightly",
	} {
		if output, err := u.run(line); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, output)
		}
	}
	for _, q := range questions(t) {
		output, err := u.run(q.command)
		if err == nil {
			err = checkPrinted(output, q.output)
		}
		if err != nil {
			t.Errorf("%s\n$ %s\n%s%v", q.title, q.command, output, err)
		}
	}
}

// Every command of README.md runs: those of the shell in the order of the page, on a daemon that
// was started as it says.
func TestReadme(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	u := newReader(t)
	u.write("requests.jsonl", short(40))
	upstream := startRunner(t, freeAddress(t), "--profile", "instant", "--model", "m")
	u.daemon = NewDaemon(t, Options{Admin: freeAddress(t), Upstreams: []string{upstream}})
	// Blocks that other tests run, by their first words: the demo, the installation of a release,
	// and the starts of a daemon.
	others := []string{"go run ./cmd/tidefill demo", "sha256sum", "go build",
		"tidefill serve", "TIDEFILL_API_KEYS="}
	block := regexp.MustCompile("(?s)\n```sh\n(.*?)```" +
		"(?:[^`]*?\n```\n(.*?)```)?") // with the output, if one follows
	ran := 0
	for rest := page; ; {
		at := block.FindSubmatchIndex(rest)
		if at == nil {
			break
		}
		commands, output := string(rest[at[2]:at[3]]), ""
		if at[4] >= 0 {
			output = strings.TrimSpace(string(rest[at[4]:at[5]]))
		}
		rest = rest[at[3]:]
		if slices.ContainsFunc(others, func(first string) bool {
			return strings.HasPrefix(commands, first)
		}) {
			continue
		}
		ran++
		got, err := u.run("set -e\n" + commands)
		if err == nil && output != "" {
			err = checkPrinted(got, output)
		}
		if err != nil {
			t.Errorf("%s%s%v", commands, got, err)
		}
	}
	if ran != 2 {
		t.Errorf("%d blocks were run, want 2", ran)
	}
	for _, file := range []string{"report/report.html", "report/result.json"} {
		if _, err := os.Stat(filepath.Join(u.dir, file)); err != nil {
			t.Error(err)
		}
	}
}

// reader is somebody with a shell in a directory of their own, in which the program and the
// scenarios of the simulator are.
type reader struct {
	t           *testing.T
	dir         string
	daemon      *Daemon
	environment []string
}

func newReader(t *testing.T) *reader {
	u := &reader{t: t, dir: t.TempDir()}
	repository, err := filepath.Abs("..")
	if err == nil {
		err = os.Symlink(filepath.Join(repository, "simulator"), filepath.Join(u.dir, "simulator"))
	}
	if err == nil {
		err = os.Symlink(Binary(t), filepath.Join(u.dir, "tidefill"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (u *reader) write(name, content string) (path string) {
	path = filepath.Join(u.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		u.t.Fatal(err)
	}
	return path
}

// run has the shell run commands, of the daemon's addresses instead of the usual ones.
func (u *reader) run(commands string) (output string, err error) {
	ctx, cancel := context.WithTimeout(u.t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", strings.ReplaceAll(commands,
		"127.0.0.1:8081", u.daemon.Admin))
	command.WaitDelay = time.Second
	command.Dir = u.dir
	command.Env = append(append(os.Environ(), "TIDEFILL_SERVER="+u.daemon.URL,
		"TIDEFILL_ADMIN=http://"+u.daemon.Admin, "PATH="+u.dir+":"+os.Getenv("PATH")),
		u.environment...)
	printed, err := command.CombinedOutput()
	return string(printed), err
}

// short returns lines of chat completions of a few tokens.
func short(n int) string {
	var content strings.Builder
	for i := range n {
		fmt.Fprintf(&content, `{"custom_id":"%d-%d","method":"POST","url":"/v1/chat/completions",`+
			`"body":{"model":"m","max_tokens":8,"messages":[{"role":"user","content":"Is %d prime?"}]}}`+"\n",
			n, i, i)
	}
	return content.String()
}
