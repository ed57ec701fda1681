package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/internal/humanize"
)

func verifyCommand() *cobra.Command {
	return remoteCommand(&cobra.Command{
		Use:   "verify BATCH",
		Short: "Prove that a batch lost no line and doubled none",
		Long: `Prove that a batch lost no line and doubled none: download its input and result files and compare their custom_ids. Every
line of the input must stand in the output or the error file, once.

Exit status 1 says that it doesn't hold, and the offenders are named.`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, c *client.Client, r *remote, args []string, out io.Writer) error {
		b, err := c.Batch(ctx, args[0])
		if err != nil {
			return err
		}
		if !b.Ended() {
			return fmt.Errorf("batch %s is %s; it can be verified when it has ended", b.ID,
				b.Status)
		}
		if b.Status == "failed" && len(b.Results()) == 0 {
			return fmt.Errorf("batch %s failed before any line ran; there is nothing to verify",
				b.ID)
		}
		v := verdict{Batch: b.ID, Status: b.Status}
		for _, group := range groupsOf(b) {
			if err := v.audit(ctx, c, group); err != nil {
				return fmt.Errorf("verify batch %s: %w", b.ID, err)
			}
		}
		v.judge(b)
		if r.json {
			err = printJSON(out, v)
		} else {
			err = v.print(out)
		}
		if err == nil && !v.OK {
			err = exit{status: exitError}
		}
		return err
	})
}

// verdict is what verify found. Lists of offenders hold the first ones, their counts all.
type verdict struct {
	Batch       string    `json:"batch"`
	Status      string    `json:"status"`
	OK          bool      `json:"ok"`
	InputLines  int       `json:"input_lines"`
	OutputLines int       `json:"output_lines"`
	ErrorLines  int       `json:"error_lines"`
	Missing     offenders `json:"missing"`          // in the input, in neither result file
	Repeated    offenders `json:"repeated"`         // more than once in the result files
	Unknown     offenders `json:"unknown"`          // in a result file, not in the input
	Faults      []string  `json:"faults,omitempty"` // of the figures
}

type offenders struct {
	Count int      `json:"count"`
	First []string `json:"first,omitempty"`
}

const offendersShown = 20

func (o *offenders) add(format string, args ...any) {
	o.Count++
	if len(o.First) < offendersShown {
		o.First = append(o.First, fmt.Sprintf(format, args...))
	}
}

// group is input files and the result files that answer them together.
type group struct {
	inputs  []string
	outputs []client.Output
}

// groupsOf pairs each input with its own results, where the batch was asked to keep them apart.
func groupsOf(b client.Batch) []group {
	joined := group{inputs: b.Inputs(), outputs: b.Results()}
	for _, output := range joined.outputs {
		if output.InputFileID == "" {
			return []group{joined}
		}
	}
	if len(joined.outputs) == 0 {
		return []group{joined}
	}
	var groups []group
	for _, input := range joined.inputs {
		g := group{inputs: []string{input}}
		for _, output := range joined.outputs {
			if output.InputFileID == input {
				g.outputs = append(g.outputs, output)
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// digest stands for a custom_id, so that memory doesn't grow with the length of ids.
type digest [16]byte

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:])
}

// audit compares one group's files, each read as a stream.
func (v *verdict) audit(ctx context.Context, c *client.Client, g group) error {
	answered := make(map[digest]bool) // every input line; true once its result was seen
	for _, input := range g.inputs {
		err := scan(ctx, c, input, func(id string, line int64) error {
			v.InputLines++
			if _, twice := answered[digestOf(id)]; twice {
				v.Faults = append(v.Faults, fmt.Sprintf(
					"the custom_id %q stands twice in the input, again in %s on line %d", id, input,
					line))
			}
			answered[digestOf(id)] = false
			return nil
		})
		if refused := new(client.Error); errors.As(err, &refused) && refused.Status == 404 {
			return fmt.Errorf(
				"input file %s is gone, deleted or expired, and without it nothing can be proven",
				input)
		}
		if err != nil {
			return err
		}
	}
	results := func(file string, lines *int) error {
		if file == "" {
			return nil
		}
		return scan(ctx, c, file, func(id string, line int64) error {
			*lines++
			seen, known := answered[digestOf(id)]
			switch {
			case !known:
				v.Unknown.add("%q, %s line %d", id, file, line)
			case seen:
				v.Repeated.add("%q, again in %s line %d", id, file, line)
			default:
				answered[digestOf(id)] = true
			}
			return nil
		})
	}
	for _, output := range g.outputs {
		if err := errors.Join(results(output.OutputFileID, &v.OutputLines),
			results(output.ErrorFileID, &v.ErrorLines)); err != nil {
			return err
		}
	}
	complete := true
	for _, seen := range answered {
		complete = complete && seen
	}
	if complete {
		return nil
	}
	for _, input := range g.inputs { // the digests don't tell their names, the files do
		err := scan(ctx, c, input, func(id string, line int64) error {
			if !answered[digestOf(id)] {
				v.Missing.add("%q, %s line %d", id, input, line)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// scan calls fn with every custom_id of a file.
func scan(
	ctx context.Context, c *client.Client, file string, fn func(id string, line int64) error,
) error {
	content, err := c.Content(ctx, file)
	if err != nil {
		return err
	}
	defer content.Close()
	in := bufio.NewReaderSize(content, 64<<10)
	byteOrderMark := []byte("\xEF\xBB\xBF")
	if start, _ := in.Peek(len(byteOrderMark)); bytes.Equal(start, byteOrderMark) {
		in.Discard(len(byteOrderMark)) // it was peeked at, so it is there
	}
	if err := batchfile.ScanResults(in, fn); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// judge compares the figures with what the batch object says.
func (v *verdict) judge(b client.Batch) {
	for _, figure := range []struct {
		name      string
		said, got int
	}{
		{"total", b.Counts.Total, v.InputLines},
		{"completed", b.Counts.Completed, v.OutputLines},
		{"failed", b.Counts.Failed, v.ErrorLines},
	} {
		if figure.said != figure.got {
			v.Faults = append(v.Faults, fmt.Sprintf("request_counts.%s is %d, the files have %d",
				figure.name, figure.said, figure.got))
		}
	}
	v.OK = v.Missing.Count == 0 && v.Repeated.Count == 0 && v.Unknown.Count == 0 &&
		len(v.Faults) == 0
}

func (v *verdict) print(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%s  %s\n", v.Batch, v.Status)
	fmt.Fprintf(w, "  input   %s\n", humanize.Count(v.InputLines, "line"))
	fmt.Fprintf(w, "  output  %s\n", humanize.Count(v.OutputLines, "line"))
	fmt.Fprintf(w, "  errors  %s\n", humanize.Count(v.ErrorLines, "line"))
	for _, o := range []struct {
		what string
		offenders
	}{
		{"missing from the results", v.Missing},
		{"more than once in the results", v.Repeated},
		{"in the results and not in the input", v.Unknown},
	} {
		if o.Count == 0 {
			continue
		}
		fmt.Fprintf(w, "  %s: %s\n", o.what, humanize.Thousands(int64(o.Count)))
		for _, name := range o.First {
			fmt.Fprintf(w, "    %s\n", name)
		}
		if more := o.Count - len(o.First); more > 0 {
			fmt.Fprintf(w, "    and %s more\n", humanize.Thousands(int64(more)))
		}
	}
	for _, fault := range v.Faults {
		fmt.Fprintf(w, "  %s\n", fault)
	}
	if v.OK {
		fmt.Fprintf(w, "proven: every line of the input stands in the results, once\n")
	}
	return w.Flush()
}
