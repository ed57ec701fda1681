package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

// runBatch submits the sample batch through the API, waits for its end and downloads its results.
func (d *Demo) runBatch(ctx context.Context, daemon *app.App) (client.Batch, error) {
	fmt.Fprintf(d.Out, "tidefill serves at %s, in front of %d emulated runners (a 70B model on "+
		"four A100 each, %gx real time)\nthat have interactive traffic of their own. "+
		"Submitting a batch of %s.\n\n",
		daemon.URL(), runnerCount, d.Speedup, humanize.Count(d.Lines, "line"))
	if d.promised {
		fmt.Fprintf(d.Out, "Interactive users are promised a first token within %v and %v per "+
			"token (flowcontrol.slo).\nThe first line is sent after some 20 s, in which Tidefill "+
			"watches how they do alone.\n\n", d.users.promise.TTFT, d.users.promise.TPOT)
	}

	sample := sampleBatch(d.Lines)
	input := filepath.Join(d.Data, "demo.jsonl")
	if err := os.WriteFile(input, sample, 0o644); err != nil {
		return client.Batch{}, err
	}
	c, err := client.New(daemon.URL(), client.Options{})
	if err != nil {
		return client.Batch{}, err
	}
	defer c.Close()
	started := time.Now()
	file, err := c.Upload(ctx, filepath.Base(input), bytes.NewReader(sample), int64(len(sample)))
	if err != nil {
		return client.Batch{}, err
	}
	b, err := c.CreateBatch(ctx, client.BatchRequest{
		InputFileID: file.ID, Endpoint: endpoint,
		CompletionWindow: "1h", Metadata: map[string]string{"project": "demo"},
	})
	if err != nil {
		return client.Batch{}, err
	}
	if b, err = c.Watch(ctx, b.ID, d.progress); err != nil {
		return client.Batch{}, err
	}
	files, err := c.Download(ctx, b, filepath.Join(d.Data, "results"))
	if err != nil {
		return client.Batch{}, err
	}
	fmt.Fprintf(d.Out, "\n%s %s after %s: %d done, %d failed.\n", b.ID, b.Status,
		humanize.Duration(time.Since(started)), b.Counts.Completed, b.Counts.Failed)
	d.users.printTable(d.Out)
	for _, name := range files {
		fmt.Fprintf(d.Out, "  %s\n", name)
	}
	if b.OutputFileID != "" {
		if err := d.printAnswers(files[0]); err != nil {
			return client.Batch{}, err
		}
	}
	if !d.Once {
		d.printNextCommands(daemon, b, input)
	}
	return b, nil
}

// progress reports how the batch gets on, and what users feel of it.
func (d *Demo) progress(b client.Batch) {
	d.Progress(b)
	if b.Counts.Done() > 0 {
		d.users.report(d.Out, time.Now())
	}
}

// printedAnswers is the number of answers that printAnswers prints.
const printedAnswers = 3

// printAnswers prints the first answers of an output file.
func (d *Demo) printAnswers(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	results := json.NewDecoder(f)
	fmt.Fprintln(d.Out)
	for range printedAnswers {
		var line struct {
			CustomID string `json:"custom_id"`
			Response struct {
				Body struct {
					Choices []struct {
						Message struct{ Content string }
					}
				}
			}
		}
		if err := results.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		answer := ""
		for _, choice := range line.Response.Body.Choices {
			answer += choice.Message.Content
		}
		fmt.Fprintf(d.Out, "  %-12s %s\n", line.CustomID, shortened(answer, 90))
	}
	return nil
}

// shortened returns a text without line breaks, cut off after n characters.
func shortened(text string, n int) string {
	characters := []rune(strings.Join(strings.Fields(text), " "))
	if len(characters) <= n {
		return string(characters)
	}
	return string(characters[:n-1]) + "…"
}
