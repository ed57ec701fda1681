package schedule

import (
	"time"

	"github.com/tidefill/tidefill/internal/faults"
)

// Config is the configuration of the policy schedule, a timetable.
type Config struct {
	// Begin is the instant that the rows count from. Default: midnight UTC of 1 January 1970, so
	// that rows are times of day while every is 24h.
	Begin time.Time `yaml:"begin"`
	// Every is the time after which the timetable starts again. 0: never, its last row stays.
	// Default: 24h.
	Every time.Duration `yaml:"every"`
	// Rows are the timetable, in order of time. Before the first, and without any, nothing starts.
	Rows []Row `yaml:"rows"`
}

// Row holds from a time until that of the next row.
type Row struct {
	// At is the time, counted from Begin.
	At time.Duration `yaml:"at"`
	// Lines is how many a runner carries at most; 0: none.
	Lines int `yaml:"lines"`
	// Runners is how many runners carry lines, the first by name; the others carry none. 0: all.
	Runners int `yaml:"runners"`
	// PromptTokens is how many prompt tokens of batch lines may wait on a runner when another line
	// starts. 0: any number.
	PromptTokens int `yaml:"prompt_tokens"`
	// TargetShare is the share of slo.tpot that iterations shall take. The number of lines follows
	// it as with the policy headroom, up to lines. 0: as many lines run as lines says, however long
	// iterations take.
	TargetShare float64 `yaml:"target_share"`
}

// DefaultConfig returns a timetable of a day without rows.
func DefaultConfig() Config {
	return Config{Begin: time.Unix(0, 0).UTC(), Every: 24 * time.Hour}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var all faults.List
	if year := c.Begin.Year(); year < 1970 || year > 2200 {
		all.Add("begin", "is %v, must be between 1970 and 2200", c.Begin)
	}
	all.NotNegative("every", c.Every)
	for i, row := range c.Rows {
		switch {
		case row.At < 0 || i > 0 && row.At <= c.Rows[i-1].At:
			all.Add("rows", "row %d is at %v, must be later than the one before", i+1, row.At)
		case c.Every > 0 && row.At >= c.Every:
			all.Add("rows", "row %d is at %v, must be less than every, %v", i+1, row.At, c.Every)
		case row.Lines < 0 || row.Runners < 0 || row.PromptTokens < 0:
			all.Add("rows", "row %d has lines %d, runners %d and prompt_tokens %d, must not be "+
				"negative", i+1, row.Lines, row.Runners, row.PromptTokens)
		case !(row.TargetShare >= 0 && row.TargetShare <= 2):
			all.Add("rows", "row %d has target_share %v, must be from 0 to 2", i+1,
				row.TargetShare)
		}
	}
	return all.Err()
}
