package compare

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/internal/recording"
)

// RecordingReport holds the measures of a recording and of its simulation.
type RecordingReport struct {
	Recordings []string `json:"recordings"` // files
	Seconds    float64  `json:"seconds"`    // length of the recording
	Runners    int      `json:"runners"`
	Policy     string   `json:"policy"`
	Profile    string   `json:"profile"`
	// whether the profile was fitted to measurements
	Calibrated bool              `json:"calibrated"`
	Seed       uint64            `json:"seed"`
	Notes      []string          `json:"notes,omitempty"`
	Figures    []RecordingFigure `json:"figures"`
}

// RecordingFigure is one measure. Unknown values are nil.
type RecordingFigure struct {
	Name      string   `json:"name"`
	Unit      string   `json:"unit,omitempty"`
	Recorded  *float64 `json:"recorded"`
	Simulated *float64 `json:"simulated"`
	// Error is (simulated - recorded) / recorded.
	Error *float64 `json:"error"`
}

// addFigures adds a figure for each measure of the two summaries.
func (r *RecordingReport) addFigures(recorded, simulated *recording.Summary) {
	known := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	simulatedFigures := simulated.Figures()
	for i, f := range recorded.Figures() {
		figure := RecordingFigure{Name: f.Name, Unit: f.Unit, Recorded: known(f.Value),
			Simulated: known(simulatedFigures[i].Value)}
		if f.Value > 0 {
			figure.Error = known(simulatedFigures[i].Value/f.Value - 1)
		}
		r.Figures = append(r.Figures, figure)
	}
}

// Text writes the report as a table.
func (r *RecordingReport) Text(out io.Writer) error {
	calibration := "not calibrated"
	if r.Calibrated {
		calibration = "calibrated"
	}
	fmt.Fprintf(out, "%s of %s, policy %s, profile %s (%s), seed %d\n\n",
		time.Duration(r.Seconds*float64(time.Second)).Round(time.Second),
		humanize.Count(r.Runners, "runner"), r.Policy, r.Profile, calibration, r.Seed)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\trecorded\tsimulated\terror\t")
	for _, f := range r.Figures {
		if f.Recorded == nil && f.Simulated == nil {
			continue
		}
		relative := "-"
		if f.Error != nil {
			relative = fmt.Sprintf("%+.1f %%", 100**f.Error)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", f.Name, f.valueText(f.Recorded),
			f.valueText(f.Simulated), relative)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range r.Notes {
		if _, err := fmt.Fprintf(out, "\nnote: %s\n", note); err != nil {
			return err
		}
	}
	return nil
}

func (f RecordingFigure) valueText(v *float64) string {
	if v == nil {
		return "-"
	}
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", *v, f.Unit))
}
