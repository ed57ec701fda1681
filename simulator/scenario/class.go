package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/simulator/workload"
)

// Class is further interactive traffic with an SLO of its own.
type Class struct {
	// Name of the class. Requests of a trace with this class belong to it.
	Name string `yaml:"name"`
	// Generator of its requests, as in Interactive.Generator. Empty: the trace's requests.
	Generator string `yaml:"generator"`
	// Rate is the generator's mean, in requests a second. 0: that of the traffic that it was fitted
	// to.
	Rate float64 `yaml:"rate"`
	// Input and Output are the tokens of the generator's requests. Default: those of the traffic
	// that it was fitted to.
	Input  Length `yaml:"input"`
	Output Length `yaml:"output"`
	// Users make it a closed loop.
	Users Users `yaml:"users"`
	// SLO of its users. Fields that are 0 are as in Interactive.SLO.
	SLO SLO `yaml:"slo"`
	// Flow is that of its requests, where they pass through Tidefill.
	Flow Flow `yaml:"flow" json:",omitzero"`
}

// Users are a number of users who send a request, wait for the answer, think, and send the next.
// They send less when the service is slow.
type Users struct {
	// Count of users. 0: requests arrive whether or not others are answered.
	Count int `yaml:"count"`
	// Think is the mean time from an answer to the next request, exponentially distributed.
	Think time.Duration `yaml:"think"`
	// Timeout is the time that they wait for the first token before they abort and retry. 0: no
	// limit.
	Timeout time.Duration `yaml:"timeout"`
	// Retries is the number of retries before they give a request up.
	Retries int `yaml:"retries"`
	// Backoff is the time from a timeout to the retry.
	Backoff time.Duration `yaml:"backoff"`
}

// All returns the classes of traffic: the first, which has no name, and the others, each with its
// complete SLO.
func (i Interactive) All() []Class {
	all := []Class{{Generator: i.Generator, Rate: i.Rate, Input: i.Input, Output: i.Output,
		Users: i.Users, SLO: i.SLO, Flow: i.Flow}}
	for _, c := range i.Classes {
		c.SLO = c.SLO.or(i.SLO)
		all = append(all, c)
	}
	return all
}

// or fills in fields that are 0.
func (s SLO) or(o SLO) SLO {
	return SLO{
		TTFT: cmp.Or(s.TTFT, o.TTFT), TTFTPrompt: cmp.Or(s.TTFTPrompt, o.TTFTPrompt),
		TTFTPer1K: cmp.Or(s.TTFTPer1K, o.TTFTPer1K),
		TPOT:      cmp.Or(s.TPOT, o.TPOT), Attainment: cmp.Or(s.Attainment, o.Attainment),
	}
}

func classPath(i int) string { return fmt.Sprintf("interactive.classes[%d]", i) }

func (i Interactive) validateClasses() error {
	var all problems
	names := map[string]bool{}
	for n, c := range i.Classes {
		path := classPath(n)
		all.check(c.Name != "", "%s.name is empty", path)
		all.check(c.Name == "" || !names[c.Name], "%s.name is %q, like that of a class above", path,
			c.Name)
		names[c.Name] = true
		switch {
		case c.Generator != "":
			_, err := workload.LookupPopulation(c.Generator)
			all.check(err == nil, "%s.generator: %w", path, err)
		default:
			all.check(i.Trace != "",
				"%s.generator is empty; only the requests of a trace have classes of their own",
				path)
			all.check(c.Rate == 0 && c.Input == Length{} && c.Output == Length{} &&
				c.Users == Users{},
				"%s has a rate, lengths or users, but no generator that they are of", path)
		}
		all.check(c.Rate >= 0 && c.Rate <= maxRate,
			"%s.rate is %v requests a second, want 0 for the generator's own or up to %d", path,
			c.Rate, maxRate)
		all.check(c.Rate == 0 || c.Users.Count == 0,
			"%s.rate is given, but its users ask when they will; remove it", path)
		all.add(path+".input", c.Input.validate())
		all.add(path+".output", c.Output.validate())
		all.add(path+".users", c.Users.validate())
		all.add(path+".slo", c.SLO.or(i.SLO).validate())
	}
	return errors.Join(all...)
}

const maxUsers = 100_000

func (u Users) validate() error {
	var all problems
	all.check(u.Count >= 0 && u.Count <= maxUsers, "count is %d, want 0 for none or up to %d",
		u.Count, maxUsers)
	if u.Count == 0 {
		all.check(u == Users{}, "count is 0, so there are no users; remove the other keys")
		return errors.Join(all...)
	}
	all.check(u.Think > 0 && u.Think <= 24*time.Hour, "think is %s, want above 0 and at most 24h",
		u.Think)
	all.check(u.Timeout >= 0 && u.Timeout <= 24*time.Hour,
		"timeout is %s, want 0 for none or up to 24h", u.Timeout)
	all.check(u.Retries >= 0 && u.Retries <= 1000, "retries is %d, want 0 to 1000", u.Retries)
	all.check(u.Timeout > 0 || u.Retries == 0,
		"retries is %d, but without a timeout nobody retries", u.Retries)
	all.check(u.Backoff >= 0 && u.Backoff <= 24*time.Hour, "backoff is %s, want 0 to 24h",
		u.Backoff)
	return errors.Join(all...)
}
