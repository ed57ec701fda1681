package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tidefill/tidefill/internal/testservers"
	"github.com/tidefill/tidefill/simulator/workload"
)

// daemon is a `tidefill serve`.
type daemon struct {
	program        string
	args           []string
	address, admin string
	process        *process
}

func startDaemon(
	ctx context.Context, program, config, data string, settings []string,
) (*daemon, error) {
	d := &daemon{program: program}
	for _, address := range []*string{&d.address, &d.admin} {
		free, err := testservers.FreeAddress()
		if err != nil {
			return nil, err
		}
		*address = free
	}
	d.args = []string{"serve", "--listen", d.address, "--admin-listen", d.admin, "--data", data,
		"--node", "live",
		"--config", config}
	for _, s := range settings {
		d.args = append(d.args, "--set", s)
	}
	return d, d.launch(ctx)
}

// launch starts the daemon, also after it was killed, and waits until it is ready.
func (d *daemon) launch(ctx context.Context) (err error) {
	if d.process, err = startProcess(d.program, d.args, nil); err != nil {
		return err
	}
	return d.process.await(ctx, func(ctx context.Context) error {
		_, err := fetch(ctx, "http://"+d.admin+"/readyz")
		return err
	})
}

// writeLines writes lines of a job from a number on as an input file.
func writeLines(path string, job *workload.Job, from, lines int) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	text := bytes.Buffer{}
	for i := from; i < from+lines; i++ {
		body, err := newBody(job.Line(i), uint64(i)<<20, false)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, `{"custom_id":"%d","method":"POST","url":"/v1/completions","body":%s}`+"\n",
			i, body)
	}
	_, err = file.Write(text.Bytes())
	return err
}

// upload returns the id of an uploaded input file.
func (d *daemon) upload(ctx context.Context, path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	if err := w.WriteField("purpose", "batch"); err != nil {
		return "", err
	}
	part, err := w.CreateFormFile("file", filepath.Base(path))
	if err != nil {
		return "", err
	}
	if _, err := part.Write(content); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return d.create(ctx, "/v1/files", w.FormDataContentType(), &form)
}

// submit creates a batch. A window of 0 is a day.
func (d *daemon) submit(ctx context.Context, file string, window time.Duration) error {
	options := map[string]any{}
	if window > 0 {
		options["deadline"] = window.String()
	}
	body, err := json.Marshal(map[string]any{"input_file_id": file, "endpoint": "/v1/completions",
		"completion_window": "24h", "tidefill": options})
	if err != nil {
		return err
	}
	_, err = d.create(ctx, "/v1/batches", "application/json", bytes.NewReader(body))
	return err
}

// create posts something and returns the id of what it created.
func (d *daemon) create(
	ctx context.Context, path, contentType string, body io.Reader,
) (string, error) {
	request, err := http.NewRequestWithContext(ctx, "POST", "http://"+d.address+path, body)
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", contentType)
	client := &http.Client{Timeout: time.Minute}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("POST %s: %s: %.500s", path, response.Status, text)
	}
	var created struct{ ID string }
	return created.ID, json.Unmarshal(text, &created)
}

// state is what the daemon's metrics show at a moment.
type state struct {
	at       time.Duration
	tokens   float64 // of answered lines, input and output
	lines    float64
	inFlight float64
	cpu      float64 // seconds
	reasons  []string
}

func (d *daemon) read(ctx context.Context) (state, error) {
	p, err := readPage(ctx, "http://"+d.admin+"/metrics")
	if err != nil {
		return state{}, err
	}
	s := state{tokens: p.sum("tidefill_tokens_total", "kind", "input") +
		p.sum("tidefill_tokens_total", "kind", "output"),
		lines:    p.sum("tidefill_lines_total"),
		inFlight: p.sum("tidefill_runner_in_flight_lines"),
		cpu:      p.sum("process_cpu_seconds_total")}
	for _, m := range p["tidefill_pool_limited"].GetMetric() {
		if m.GetGauge().GetValue() == 0 {
			continue
		}
		for _, l := range m.GetLabel() {
			if l.GetName() == "reason" && !slices.Contains(s.reasons, l.GetValue()) {
				s.reasons = append(s.reasons, l.GetValue())
			}
		}
	}
	return s, nil
}

// InFlight returns the number of batch lines that the daemon with this admin URL has in flight.
func InFlight(ctx context.Context, admin string) (int, error) {
	p, err := readPage(ctx, admin+"/metrics")
	return int(p.sum("tidefill_runner_in_flight_lines")), err
}

// Transactions returns the number of transactions of its database that a daemon has ended.
func Transactions(ctx context.Context, admin string) (n uint64, err error) {
	p, err := readPage(ctx, admin+"/metrics")
	for _, m := range p["tidefill_postgres_transaction_seconds"].GetMetric() {
		n += m.GetHistogram().GetSampleCount()
	}
	return n, err
}
