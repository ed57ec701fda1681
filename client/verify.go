package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// Verification says whether every line of a batch's input has exactly one result.
type Verification struct {
	Batch       string    `json:"batch"`
	Status      string    `json:"status"`
	OK          bool      `json:"ok"`
	InputLines  int       `json:"input_lines"`
	OutputLines int       `json:"output_lines"`
	ErrorLines  int       `json:"error_lines"`
	Missing     Offenders `json:"missing"`  // in the input, in neither result file
	Repeated    Offenders `json:"repeated"` // more than once in the result files
	Unknown     Offenders `json:"unknown"`  // in a result file, not in the input
	// Faults lists counts of the batch that differ from its files, and repeated custom_ids of the
	// input.
	Faults []string `json:"faults,omitempty"`
}

// Offenders are lines that break the promise.
type Offenders struct {
	Count int      `json:"count"`
	First []string `json:"first,omitempty"` // at most 20 of them
}

const maxOffenders = 20

func (o *Offenders) add(format string, args ...any) {
	o.Count++
	if len(o.First) < maxOffenders {
		o.First = append(o.First, fmt.Sprintf(format, args...))
	}
}

// Verify downloads the input and result files of an ended batch and compares their custom_ids.
// Memory grows with the number of lines, at some tens of bytes each.
func (c *Client) Verify(ctx context.Context, b Batch) (Verification, error) {
	if !b.Ended() {
		return Verification{}, fmt.Errorf("batch %s is %s; it can be verified when it has ended",
			b.ID, b.Status)
	}
	if b.Status == "failed" && len(b.Results()) == 0 {
		return Verification{}, fmt.Errorf("batch %s failed before any line ran; "+
			"there is nothing to verify", b.ID)
	}
	v := Verification{Batch: b.ID, Status: b.Status}
	for _, g := range fileGroups(b) {
		if err := v.compare(ctx, c, g); err != nil {
			return Verification{}, fmt.Errorf("verify batch %s: %w", b.ID, err)
		}
	}
	v.compareCounts(b.Counts)
	v.OK = v.Missing.Count == 0 && v.Repeated.Count == 0 && v.Unknown.Count == 0 &&
		len(v.Faults) == 0
	return v, nil
}

// fileGroup holds input files and the result files of their lines.
type fileGroup struct {
	inputs  []string
	outputs []ResultFiles
}

// fileGroups pairs each input file with its own result files, if the batch has them per input.
func fileGroups(b Batch) []fileGroup {
	joined := fileGroup{inputs: b.Inputs(), outputs: b.Results()}
	for _, output := range joined.outputs {
		if output.InputFileID == "" {
			return []fileGroup{joined}
		}
	}
	if len(joined.outputs) == 0 {
		return []fileGroup{joined}
	}
	var groups []fileGroup
	for _, input := range joined.inputs {
		g := fileGroup{inputs: []string{input}}
		for _, output := range joined.outputs {
			if output.InputFileID == input {
				g.outputs = append(g.outputs, output)
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// digest identifies a custom_id in a fixed number of bytes.
type digest [16]byte

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:])
}

// compare reads the files of one group, each as a stream.
func (v *Verification) compare(ctx context.Context, c *Client, g fileGroup) error {
	answered := make(map[digest]bool) // has every input line; true: a result was read
	for _, input := range g.inputs {
		if err := v.readInput(ctx, c, input, answered); err != nil {
			return err
		}
	}
	for _, output := range g.outputs {
		if err := errors.Join(
			v.readResults(ctx, c, output.OutputFileID, &v.OutputLines, answered),
			v.readResults(ctx, c, output.ErrorFileID, &v.ErrorLines, answered)); err != nil {
			return err
		}
	}
	for _, seen := range answered {
		if !seen {
			return v.nameMissing(ctx, c, g.inputs, answered)
		}
	}
	return nil
}

func (v *Verification) readInput(
	ctx context.Context, c *Client, file string, answered map[digest]bool,
) error {
	err := c.scanIDs(ctx, file, func(id string, line int64) error {
		v.InputLines++
		if _, repeated := answered[digestOf(id)]; repeated {
			v.Faults = append(v.Faults, fmt.Sprintf(
				"the custom_id %q is in the input twice, again in %s on line %d", id, file, line))
		}
		answered[digestOf(id)] = false
		return nil
	})
	if refused := (*Error)(nil); errors.As(err, &refused) && refused.Status == 404 {
		return fmt.Errorf("input file %s is gone, deleted or expired; without it nothing can be "+
			"verified", file)
	}
	return err
}

func (v *Verification) readResults(
	ctx context.Context, c *Client, file string, count *int, answered map[digest]bool,
) error {
	if file == "" {
		return nil
	}
	return c.scanIDs(ctx, file, func(id string, line int64) error {
		*count++
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

// nameMissing reads the inputs again, because the digests of missing lines do not have their names.
func (v *Verification) nameMissing(
	ctx context.Context, c *Client, inputs []string, answered map[digest]bool,
) error {
	for _, input := range inputs {
		err := c.scanIDs(ctx, input, func(id string, line int64) error {
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

// scanIDs calls fn with every custom_id of a file.
func (c *Client) scanIDs(
	ctx context.Context, file string, fn func(id string, line int64) error,
) error {
	content, err := c.Content(ctx, file)
	if err != nil {
		return err
	}
	defer content.Close()
	in := bufio.NewReaderSize(content, 64<<10)
	byteOrderMark := []byte("\xEF\xBB\xBF")
	if start, _ := in.Peek(len(byteOrderMark)); bytes.Equal(start, byteOrderMark) {
		in.Discard(len(byteOrderMark))
	}
	if err := batchfile.ScanResults(in, fn); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// compareCounts compares the counts of the batch with those of its files.
func (v *Verification) compareCounts(c Counts) {
	for _, count := range []struct {
		name       string
		batch, got int
	}{
		{"total", c.Total, v.InputLines},
		{"completed", c.Completed, v.OutputLines},
		{"failed", c.Failed, v.ErrorLines},
	} {
		if count.batch != count.got {
			v.Faults = append(v.Faults, fmt.Sprintf("request_counts.%s is %d, the files have %d",
				count.name, count.batch, count.got))
		}
	}
}
