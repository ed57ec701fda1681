package openai

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// answerPair is one answer in the two forms that a server gives it. testdata/README.md says from
// which servers the forms are.
type answerPair struct {
	name    string
	path    string            // of the endpoint
	plain   map[string]any    // what it answers without streaming
	stream  string            // the events that it sends instead
	differs map[string]string // paths of members that the server itself answers otherwise, and why
}

// corpus reads all pairs. A directory is named engine-endpoint-case.
func corpus(t testing.TB) (pairs []answerPair) {
	dirs, err := filepath.Glob("testdata/streams/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("testdata/streams has %d pairs, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		p := answerPair{name: filepath.Base(dir), differs: map[string]string{}}
		p.path = pathOf(t, p.name)
		p.plain = decode(t, readFile(t, dir, "plain.json"))
		p.stream = readFile(t, dir, "stream.txt")
		for row := range strings.Lines(readFile(t, dir, "differs.txt")) {
			member, why, _ := strings.Cut(strings.TrimSpace(row), ": ")
			p.differs[member] = why
		}
		pairs = append(pairs, p)
	}
	return pairs
}

func pathOf(t testing.TB, name string) string {
	path := map[string]string{"chat": chatPath, "completion": "/v1/completions",
		"responses": responsesPath}[strings.Split(name, "-")[1]]
	if path == "" {
		t.Fatalf("%s: the second part of the name is no endpoint", name)
	}
	return path
}

// readFile returns a file's text; none if it is absent.
func readFile(t testing.TB, dir, name string) string {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// status returns the HTTP status of the plain answer.
func (p *answerPair) status(t rapid.TB) int {
	fault, ok := p.plain["error"].(map[string]any)
	if !ok || p.plain["object"] != nil { // an answer may hold the error of a failed response
		return 200
	}
	return int(number(t, fault["code"]))
}

// check compares an answer that was joined from the stream, in meaning, with the plain one.
func (p *answerPair) check(t rapid.TB, status int, body string, err error) {
	t.Helper()
	if want := p.status(t); err != nil || status != want {
		t.Fatalf("%s: got status %d, %v; want %d", p.name, status, err, want)
	}
	want, got := meaning(p.plain), meaning(decode(t, body))
	for member, why := range p.differs {
		if reflect.DeepEqual(take(want, member), take(got, member)) {
			t.Errorf("%s: differs.txt says of %s that %s, but it is equal", p.name, member, why)
		}
	}
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("%s: the joined answer (+) is not the plain one (-):\n%s", p.name,
			cmp.Diff(want, got))
	}
}

func TestStreamsEqualPlainAnswers(t *testing.T) {
	for _, p := range corpus(t) {
		t.Run(p.name, func(t *testing.T) {
			status, body, err := whole(p.path, p.stream, nil)
			p.check(t, status, body, err)
			status, body, err = joined(p.path,
				iotest.OneByteReader(strings.NewReader(p.stream)), nil)
			p.check(t, status, body, err)
			checkEventsOfTwoReads(t, p.stream)
		})
	}
}

// However a server cuts an answer into chunks, and the network cuts those into reads.
func TestStreamsCutAnywhereEqualPlainAnswers(t *testing.T) {
	pairs := corpus(t)
	rapid.Check(t, func(t *rapid.T) {
		const some = 5 // of the pairs, one in that many: 20 cuts of each
		for i := rapid.IntRange(0, some-1).Draw(t, "first pair"); i < len(pairs); i += some {
			p := &pairs[i]
			reads := &randomReads{t: t, rest: recut(t, p.stream)}
			status, body, err := joined(p.path, reads, nil)
			p.check(t, status, body, err)
		}
	})
}

// checkEventsOfTwoReads checks that each event is the same wherever it is cut into two reads.
// Assemblies see whole events only, so this needs no joining.
func checkEventsOfTwoReads(t *testing.T, stream string) {
	const limit = 1 << 20
	for event := range strings.SplitAfterSeq(stream, "\n\n") {
		want, _ := readEvents(strings.NewReader(event), limit)
		for at := range event {
			two := io.MultiReader(strings.NewReader(event[:at]), strings.NewReader(event[at:]))
			if got, err := readEvents(two, limit); err != io.EOF || !slices.Equal(got, want) {
				t.Fatalf("cut at %d: got %q, %v; want %q", at, got, err, want)
			}
		}
	}
}

// randomReads returns what is left in reads of random lengths.
type randomReads struct {
	t    *rapid.T
	rest string
}

func (r *randomReads) Read(p []byte) (int, error) {
	if r.rest == "" {
		return 0, io.EOF
	}
	most := min(len(r.rest), len(p))
	n := copy(p, r.rest[:rapid.IntRange(1, most).Draw(r.t, "bytes")])
	r.rest = r.rest[n:]
	return n, nil
}

// A stream that ends too early is no answer, unless all of the answer came before.
func TestStreamsCutShortAreNoAnswers(t *testing.T) {
	for _, p := range corpus(t) {
		t.Run(p.name, func(t *testing.T) {
			begin := 0
			for begin < len(p.stream) {
				end := len(p.stream)
				if n := strings.Index(p.stream[begin:], "\n\n"); n >= 0 {
					end = begin + n + 2
				}
				for _, at := range []int{begin, begin + 1, (begin + end) / 2, end - 2} {
					p.checkCut(t, at)
				}
				begin = end
			}
		})
	}
}

// checkCut checks what becomes of the first bytes of a stream.
func (p *answerPair) checkCut(t *testing.T, at int) {
	t.Helper()
	status, body, err := whole(p.path, p.stream[:at], nil)
	if err == nil {
		p.check(t, status, body, nil)
	}
}

// Streams from which nobody can say what the plain answer is are not guessed.
func TestStreamsThatLackTheAnswer(t *testing.T) {
	files, err := filepath.Glob("testdata/refused/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata/refused has %d streams, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			stream := readFile(t, "", file)
			status, body, err := whole(pathOf(t, name), stream, nil)
			if !errors.Is(err, ErrNotAssembled) {
				t.Errorf("got %d, %s, %v; want %v", status, body, err, ErrNotAssembled)
			}
		})
	}
}

// Whatever happens to a stream on its way, the joined answer is a JSON object of bounded size or
// there is none, and a stream that is cut short is never an answer that lacks something.
func FuzzBrokenStream(f *testing.F) {
	pairs := corpus(f)
	for i := range pairs {
		f.Add(uint(i), uint(0), []byte(`,"`), uint(1<<20))
		f.Add(uint(i), uint(len(pairs[i].stream)/2), []byte("\n\ndata: "), uint(1<<20))
		f.Add(uint(i), uint(0), []byte(nil), uint(len(pairs[i].stream)*2/3))
	}
	f.Fuzz(func(t *testing.T, pair, at uint, patch []byte, end uint) {
		p := &pairs[pair%uint(len(pairs))]
		if len(patch) == 0 {
			p.checkCut(t, int(end%uint(len(p.stream)+1)))
			return
		}
		at %= uint(len(p.stream))
		rest := p.stream[min(at+uint(len(patch)), uint(len(p.stream))):]
		stream := p.stream[:at] + string(patch) + rest
		stream = stream[:min(end, uint(len(stream)))]
		_, body, err := whole(p.path, stream, nil)
		if err == nil && !batchfile.IsObject([]byte(body)) {
			t.Fatalf("got %q of %q", body, stream)
		}
		// A choice of 11 bytes becomes one of about 110, with the members that the API requires.
		if most := 16*len(stream) + 1024; len(body) > most {
			t.Fatalf("got %d bytes of %d, want at most %d", len(body), len(stream), most)
		}
	})
}
