package scenario

import (
	"errors"
	"time"
)

// SLO is the objective of an interactive user. A request attains it if it meets both times.
type SLO struct {
	// TTFT is the longest time to the first token for a prompt of at most TTFTPrompt tokens.
	TTFT time.Duration `yaml:"ttft"`
	// TTFTPrompt is the prompt length from which more time is allowed.
	TTFTPrompt int `yaml:"ttft_prompt"`
	// TTFTPer1K is that time, for each further 1,000 tokens of prompt.
	TTFTPer1K time.Duration `yaml:"ttft_per_1k"`
	// TPOT is the longest mean time between the tokens of a request after its first.
	TPOT time.Duration `yaml:"tpot"`
	// Attainment is the share of requests that must attain the SLO without batch work for the
	// scenario to be valid: a pool that misses its SLO by itself can't measure a policy. Usual
	// values are 0.99, 0.97 for flash crowds, and less if all runners are gone for a while.
	Attainment float64 `yaml:"attainment"`
}

// FirstToken returns the TTFT objective for a prompt.
func (s SLO) FirstToken(prompt int) time.Duration {
	beyond := time.Duration(max(0, prompt-s.TTFTPrompt))
	return s.TTFT + beyond/1000*s.TTFTPer1K + beyond%1000*s.TTFTPer1K/1000
}

func (s SLO) validate() error {
	var all problems
	all.check(s.TTFT > 0 && s.TTFT <= time.Hour, "ttft is %s, want above 0 and at most %s", s.TTFT,
		time.Hour)
	all.check(s.TTFTPrompt >= 0, "ttft_prompt is %d, want 0 or more", s.TTFTPrompt)
	all.check(s.TTFTPer1K >= 0 && s.TTFTPer1K <= time.Hour, "ttft_per_1k is %s, want 0 to %s",
		s.TTFTPer1K, time.Hour)
	all.check(s.TPOT > 0 && s.TPOT <= time.Hour, "tpot is %s, want above 0 and at most %s", s.TPOT,
		time.Hour)
	all.check(s.Attainment >= 0.8 && s.Attainment <= 1, "attainment is %v, want 0.8 to 1",
		s.Attainment)
	return errors.Join(all...)
}
