package main

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/batchfile"
)

// submitOptions are the flags of `batch submit` for what a request has besides its inputs.
type submitOptions struct {
	extensions     client.RequestExtensions
	maxFailedLines int
	retry          client.RequestRetry
	canary         client.RequestCanary
	canaryRatio    float64
	check          client.RequestCheck
	checkSchema    string
	defaults       string
	overrides      string
	outputLife     time.Duration
	csvID          string
	csvBody        string
	template       string
	profile        string
	tier           string
	engineArgs     string
	scheduling     string
	changed        func(flag string) bool
}

// submitGroups orders the flags in the help.
var submitGroups = []flagGroup{
	{"Template and profile", []string{"template", "profile", "service-tier", "engine-args",
		"scheduling"}},
	{"Order", []string{"deadline", "start-by", "admission", "priority", "max-concurrency",
		"group-by"}},
	{"Failures and limits", []string{"retry-attempts", "retry-on", "max-failed-lines",
		"max-failed-ratio", "max-total-tokens", "canary", "canary-max-failed-ratio"}},
	{"Answers", []string{"check-schema", "check-pattern", "check-finish", "check-attempts"}},
	{"Rows of CSV files", []string{"csv-id", "csv-body"}},
	{"Parameters of the lines", []string{"defaults", "overrides"}},
	{"Results", []string{"outputs", "output-expires-after", "output-url"}},
}

func (o *submitOptions) register(cmd *cobra.Command) {
	flags, x := cmd.Flags(), &o.extensions
	o.changed = flags.Changed
	flags.StringVar(&x.Deadline, "deadline", "",
		"a `time`, RFC 3339 or from now (45m), by which the batch must be done")
	flags.StringVar(&x.StartBy, "start-by", "",
		"a `time`, RFC 3339 or from now, by which the first line must be in flight")
	flags.StringVar(&x.Admission, "admission", "",
		"`what` becomes of a batch that can't meet its deadline: advisory, it runs, or strict, it "+
			"is refused (default advisory, unless the daemon is strict)")
	flags.Var(&integer{&x.Priority, -100, 100}, "priority",
		"`rank` among your batches, higher first; breaks ties, unless the policy goes by it")
	flags.IntVar(&x.MaxConcurrency, "max-concurrency", 0, "at most `n` lines in flight")
	flags.StringVar(&x.GroupBy, "group-by", "",
		"run lines with the same `key` one after the other: prefix, model or none (default prefix)")
	flags.IntVar(&o.retry.Attempts, "retry-attempts", 0,
		"try a line `n` times, the first included")
	flags.IntSliceVar(&o.retry.On, "retry-on", nil,
		"the HTTP `statuses` after which a line is tried again")
	flags.IntVar(&o.maxFailedLines, "max-failed-lines", 0,
		"stop when more than `n` lines have failed")
	flags.Float64Var(&x.MaxFailedRatio, "max-failed-ratio", 0,
		"stop when a larger `share` of the finished lines has failed, such as 0.1")
	flags.Int64Var(&x.MaxTotalTokens, "max-total-tokens", 0,
		"stop when the answers have used more than `n` tokens")
	flags.IntVar(&o.canary.Lines, "canary", 0,
		"send `n` lines first; the others run unless too many of them fail")
	flags.Float64Var(&o.canaryRatio, "canary-max-failed-ratio", 0,
		"the `share` of the canary lines that may fail (default 0.5)")
	flags.StringVar(&o.checkSchema, "check-schema", "",
		"`JSON`, or @FILE, of a schema to which answers conform; others are asked for again")
	flags.StringVar(&o.check.Pattern, "check-pattern", "",
		"a regular `expression` (RE2) that answers match")
	flags.StringSliceVar(&o.check.FinishReason, "check-finish", nil,
		"the finish `reasons` that answers may have, such as stop")
	flags.IntVar(&o.check.Attempts, "check-attempts", 0,
		"ask for at most `n` answers until one passes, the first included (default 2)")
	flags.StringVar(&o.csvID, "csv-id", "",
		"the `column` of the custom_id (default: row-1 and so on)")
	flags.StringVar(&o.csvBody, "csv-body", "", "a `FILE` with the JSON body of a row's line, in "+
		"whose strings {{column}} stands for a cell")
	flags.StringVar(&o.defaults, "defaults", "",
		"`JSON`, or @FILE, of parameters for lines that don't have them")
	flags.StringVar(&o.overrides, "overrides", "",
		"`JSON`, or @FILE, of parameters for all lines; null removes one")
	flags.StringVar(&x.Outputs, "outputs", "",
		"`how` many result files: joined, or per_input (default joined)")
	flags.StringVar(&x.OutputURL, "output-url", "",
		"write the results below this `url` of a bucket as well: s3://BUCKET/NAME/")
	flags.StringVar(&o.template, "template", "",
		"run the lines as the deployment `template` says: NAME, or NAME@VERSION")
	flags.StringVar(&o.profile, "profile", "", "store, schedule and limit the batch as the "+
		"`profile` says (default that of the daemon)")
	flags.StringVar(&o.tier, "service-tier", "",
		"the service `tier`, which selects the profile that has it as its alias")
	flags.StringVar(&o.engineArgs, "engine-args", "",
		"`JSON`, or @FILE, of engine arguments that differ from those of --template")
	flags.StringVar(&o.scheduling, "scheduling", "",
		"`JSON`, or @FILE, of scheduling that differs from that of --profile")
	flags.DurationVar(&o.outputLife, "output-expires-after", 0,
		"delete the result files after this `time`, from 1h to 720h")
}

// submitRequest is a create request without its inputs.
type submitRequest struct{ client.BatchRequest }

// request returns the request that the flags describe.
func (s *submission) request() (submitRequest, error) {
	metadata, err := readMetadata(s.meta)
	if err != nil {
		return submitRequest{}, err
	}
	r := client.BatchRequest{CompletionWindow: s.window, Metadata: metadata}
	o := &s.options
	if o.changed("output-expires-after") {
		r.OutputExpiresAfter = &client.FileExpiry{Anchor: "created_at",
			Seconds: int64(math.Ceil(o.outputLife.Seconds()))}
	}
	r.ServiceTier = o.tier
	x, err := o.read()
	if err != nil {
		return submitRequest{}, err
	}
	if !reflect.ValueOf(x).IsZero() {
		r.Tidefill = &x
	}
	return submitRequest{r}, nil
}

// setInputs names the input files.
func (r *submitRequest) setInputs(ids []string) {
	if len(ids) == 1 {
		r.InputFileID = ids[0]
		return
	}
	r.extensions().InputFileIDs = ids
}

func (r *submitRequest) extensions() *client.RequestExtensions {
	if r.Tidefill == nil {
		r.Tidefill = &client.RequestExtensions{}
	}
	return r.Tidefill
}

// read returns the extensions. The API checks their values.
func (o *submitOptions) read() (x client.RequestExtensions, err error) {
	x = o.extensions
	for flag, zero := range map[string]bool{"max-concurrency": x.MaxConcurrency == 0,
		"max-failed-ratio": x.MaxFailedRatio == 0, "max-total-tokens": x.MaxTotalTokens == 0,
		"retry-attempts": o.retry.Attempts == 0, "check-attempts": o.check.Attempts == 0} {
		if zero && o.changed(flag) {
			return x, usageErrorf("--%s must be above 0; leave it out for the default", flag)
		}
	}
	if o.changed("max-failed-lines") {
		x.MaxFailedLines = &o.maxFailedLines
	}
	if o.changed("retry-attempts") || o.changed("retry-on") {
		x.Retry = &o.retry
	}
	if o.changed("canary") || o.changed("canary-max-failed-ratio") {
		if !o.changed("canary") {
			return x, usageErrorf("--canary-max-failed-ratio needs --canary")
		}
		x.Canary = &o.canary
		if o.changed("canary-max-failed-ratio") {
			x.Canary.MaxFailedRatio = &o.canaryRatio
		}
	}
	if x.Check, err = o.readCheck(); err != nil {
		return x, err
	}
	if x.Registry, err = o.reference(); err != nil {
		return x, err
	}
	if x.Defaults, err = readParameters("--defaults", o.defaults); err != nil {
		return x, err
	}
	x.Overrides, err = readParameters("--overrides", o.overrides)
	return x, err
}

// readCheck returns the rules for answers; nil: there are none.
func (o *submitOptions) readCheck() (c *client.RequestCheck, err error) {
	if o.check.JSONSchema, err = readParameters("--check-schema", o.checkSchema); err != nil {
		return nil, err
	}
	switch {
	case o.checkSchema != "" || o.changed("check-pattern") || o.changed("check-finish"):
		return &o.check, nil
	case o.changed("check-attempts"):
		return nil, usageErrorf("--check-attempts needs --check-schema, --check-pattern or " +
			"--check-finish")
	}
	return nil, nil
}

// csv returns how rows become lines; nil: there are none.
func (o *submitOptions) csv() (*client.RequestCSV, error) {
	if o.csvBody == "" {
		if o.changed("csv-id") {
			return nil, usageErrorf("--csv-id needs --csv-body")
		}
		return nil, nil
	}
	body, err := readParameters("--csv-body", "@"+strings.TrimPrefix(o.csvBody, "@"))
	if err != nil {
		return nil, err
	}
	return &client.RequestCSV{CustomID: o.csvID, Body: body}, nil
}

// reference returns the names of a template and a profile; nil: there are none.
func (o *submitOptions) reference() (r *client.RegistryReference, err error) {
	r = &client.RegistryReference{}
	args, err := readParameters("--engine-args", o.engineArgs)
	if err != nil {
		return nil, err
	}
	scheduling, err := readParameters("--scheduling", o.scheduling)
	switch {
	case err != nil:
		return nil, err
	case args != nil && o.template == "":
		return nil, usageErrorf("--engine-args needs --template")
	case scheduling != nil && o.profile == "":
		return nil, usageErrorf("--scheduling needs --profile")
	case o.template == "" && o.profile == "":
		return nil, nil
	}
	if o.template != "" {
		name, version, _ := strings.Cut(o.template, "@")
		r.Template = &client.TemplateReference{Name: name, Version: version}
		if args != nil {
			r.Template.Overrides = &client.TemplateOverrides{EngineArgs: args}
		}
	}
	if o.profile != "" {
		r.Profile = &client.ProfileReference{Name: o.profile}
		if scheduling != nil {
			r.Profile.Overrides = &client.ProfileOverrides{Scheduling: scheduling}
		}
	}
	return r, nil
}

// readParameters reads an object of parameters from a flag, or from the file that it names.
func readParameters(flag, text string) (json.RawMessage, error) {
	if name, file := strings.CutPrefix(text, "@"); file {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		text, flag = string(content), flag+" "+name
	}
	if text == "" {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil || members == nil {
		return nil, usageErrorf(`%s: write a JSON object, such as {"temperature": 0}: %v`, flag,
			err)
	}
	return json.RawMessage(text), nil
}

func readMetadata(pairs []string) (map[string]string, error) {
	metadata := make(map[string]string)
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usageErrorf("--meta %s: write --meta key=value", pair)
		}
		metadata[key] = value
	}
	return metadata, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// completeSubmit offers the values of flags to shells.
func completeSubmit(cmd *cobra.Command, r *remote) {
	var urls []string
	for _, e := range batchfile.Endpoints() {
		urls = append(urls, e.URL)
	}
	completeFlags(cmd, map[string][]string{
		"endpoint":  urls,
		"window":    {"24h", "best_effort"},
		"group-by":  {"prefix", "model", "none"},
		"outputs":   {"joined", "per_input"},
		"admission": {"advisory", "strict"},
	})
	for flag, names := range map[string]func(client.Offers) []string{
		"template":     client.Offers.TemplateNames,
		"profile":      client.Offers.ProfileNames,
		"service-tier": client.Offers.Tiers,
	} {
		completeFlag(cmd, flag, func(ctx context.Context) []string {
			return offer(ctx, r, func(c *client.Client, ctx context.Context) ([]string, error) {
				offers, err := c.Offers(ctx)
				return names(offers), err
			})
		})
	}
}
