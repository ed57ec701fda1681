package compare

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidefill/tidefill/internal/recording"
	"github.com/tidefill/tidefill/simulator/fit"
	"github.com/tidefill/tidefill/simulator/replay"
)

// Replay simulates what serve --record has recorded, over restarts of the daemon: the same jobs and
// as much interactive traffic, on the recorded number of runners.
type Replay struct {
	// RecordingComparison has the pool, the policy and the configuration. Its Files are set by
	// Open.
	RecordingComparison
	// Path is a recording, or a directory with recordings.
	Path string
	// Since is the time before the end of the recording from which it is replayed. 0: all of it.
	Since time.Duration
	// Policies are tried, each as for Configuration.Candidate. Empty: the recorded one.
	Policies []string
}

// Open reads the recording. It returns the comparison to run and what to know of it. A pool that
// misses its objectives without batch work is simulated all the same.
func (p *Replay) Open() (*Comparison, []string, error) {
	starts, err := recordedStarts(p.Path)
	if err != nil {
		return nil, nil, err
	}
	read, err := p.read(starts)
	if err != nil {
		return nil, nil, err
	}
	policies := p.Policies
	if len(policies) == 0 {
		policies = []string{read.header.Policy}
	}
	var report RecordingReport
	c := &Comparison{Seeds: []uint64{p.Seed}, Unfit: true, Log: p.Log}
	for _, p.Policy = range policies {
		r, s, candidate, err := p.scenario(read)
		if err != nil {
			return nil, nil, err
		}
		report, c.Scenarios = r, []Scenario{s}
		c.Candidates = append(c.Candidates, candidate)
	}
	s := &c.Scenarios[0]
	s.Name, s.File = "recording", p.Path
	report.Notes = append(report.Notes, fmt.Sprintf("the pool has %d runners all the time, the "+
		"most that served at once", report.Runners))
	if len(starts) > 1 {
		report.Notes = append(report.Notes, "the daemon was restarted; a job that went on counts "+
			"as one job for each start")
	}
	return c, report.Notes, nil
}

// recordedStart is the recordings of one start of the daemon, the oldest first.
type recordedStart struct {
	began time.Time
	files []string
}

// recordedStarts returns the starts that a file or the files of a directory are of, in order.
func recordedStarts(path string) ([]recordedStart, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("--recording: %w", err)
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.jsonl*")); err != nil {
			return nil, err
		}
	}
	// FILE.2 is older than FILE.1, which is older than FILE.
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(age(b), age(a)) })
	var starts []recordedStart
	for _, file := range files {
		began, is, err := recordingBegan(file)
		if err != nil {
			return nil, err
		}
		if !is {
			continue
		}
		i := slices.IndexFunc(starts, func(s recordedStart) bool { return s.began.Equal(began) })
		if i < 0 {
			i = len(starts)
			starts = append(starts, recordedStart{began: began})
		}
		starts[i].files = append(starts[i].files, file)
	}
	if len(starts) == 0 {
		return nil, RequestErrorf("--recording %s: there is no recording; serve --record FILE "+
			"writes one", path)
	}
	slices.SortFunc(starts, func(a, b recordedStart) int { return a.began.Compare(b.began) })
	return starts, nil
}

// age returns the number at the end of a rotated file's name; 0: it is the youngest.
func age(file string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(file), "."))
	if err != nil {
		return 0
	}
	return n
}

// recordingBegan returns when the daemon was started that has written a file, and whether the file
// is a recording.
func recordingBegan(file string) (began time.Time, is bool, err error) {
	in, err := os.Open(file)
	if err != nil {
		return began, false, err
	}
	defer in.Close()
	head := make([]byte, 4096)
	n, err := io.ReadFull(in, head)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return began, false, fmt.Errorf("read %s: %w", file, err)
	}
	if !recording.Detect(head[:n]) {
		return began, false, nil
	}
	first, _, _ := strings.Cut(string(head[:n]), "\n")
	header, err := recording.Read(file, strings.NewReader(first+"\n"),
		func(recording.Entry) error { return nil })
	return header.Began, err == nil, err
}

// read reads the starts as one recording, whose times count from the first start.
func (p *Replay) read(starts []recordedStart) (*recorded, error) {
	last := starts[len(starts)-1]
	end := 0.0
	if p.Since > 0 {
		_, err := readRecording(last.files[len(last.files)-1], func(e recording.Entry) error {
			end = e.At
			return nil
		})
		if err != nil {
			return nil, err
		}
		end += last.began.Sub(starts[0].began).Seconds()
	}
	read := &recorded{}
	since := replay.Since{Pass: read.add}
	if p.Since > 0 {
		since.From = max(0, end-p.Since.Seconds())
	}
	for i, start := range starts {
		if i > 0 {
			since.Restart()
			read.Restart()
			read.measured = fit.RecordingReader{}
		}
		offset := start.began.Sub(starts[0].began).Seconds()
		for _, file := range start.files {
			p.Files = append(p.Files, file)
			var err error
			read.header, err = readRecording(file, func(e recording.Entry) error {
				e.At += offset
				since.Add(e)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return read, nil
}
