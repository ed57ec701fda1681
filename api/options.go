package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/internal/csvlines"
	"github.com/tidefill/tidefill/store"
)

// extensionsKey is the key, in requests and answers, of everything that OpenAI's API does not have.
const extensionsKey = "tidefill"

// maxInputs limits the input files of one batch.
const maxInputs = 100

// extensions holds the `tidefill` object of a create request. Durations in it are counted from the
// time of the request.
type extensions struct {
	Options      store.Options
	Deadline     time.Time // zero: only the completion window
	StartBy      time.Time
	InputFileIDs []string         // nil: only input_file_id
	Given        json.RawMessage  // as the user sent it; nil: absent
	Shown        json.RawMessage  // the part that listings show
	Apart        []string         // the members that are not in Shown
	Parameters   store.Parameters // the members that may be large
	HasPriority  bool             // Options.Priority was given
	Reference    *reference       // nil: no template and no profile is named
	Tier         string           // service_tier; empty: there is none
	Resolved     *store.Resolved  // what Reference stands for
	// CSV says how rows of CSV objects become lines; nil: none do.
	CSV *csvlines.Template
}

// readExtensions reads the `tidefill` object of the request. If there is none, it returns the
// defaults.
func readExtensions(request *jsonObject, now time.Time) extensions {
	o, ok := request.object(extensionsKey)
	if !ok {
		o = &jsonObject{fault: request.fault}
	}
	x := readMembers(o, now)
	if ok {
		x.Given = request.members[extensionsKey]
		x.Parameters.OptionsJSON = x.Given
		x.Shown, x.Apart = shownOptions(x.Given, o.members)
	}
	_ = o.finish() // the request's finish returns the same error
	return x
}

// ExtensionKeys lists the keys of the `tidefill` object of a create request.
func ExtensionKeys() []string {
	o := &jsonObject{fault: new(error)}
	readMembers(o, time.Now())
	return o.known
}

func readMembers(o *jsonObject, now time.Time) extensions {
	x := extensions{Deadline: o.instant("deadline", now), StartBy: o.instant("start_by", now)}
	if !x.Deadline.IsZero() && x.StartBy.After(x.Deadline) {
		o.wrongValue("start_by", "it is after '%sdeadline'.", o.path)
	}
	x.InputFileIDs = readFileIDs(o, "input_file_ids")
	x.Reference, x.HasPriority = readReference(o, registryKey), o.has("priority")
	x.Options = store.Options{
		Priority: readPriority(o),
		// one more than the number that may fail
		StopAtFailed:   int(o.integer("max_failed_lines", 0, maxInt32, -1)) + 1,
		MaxFailedRatio: o.ratio("max_failed_ratio", true, 0),
		MaxTotalTokens: o.integer("max_total_tokens", 1, maxInt53, 0),
		GroupBy:        o.choice("group_by", "prefix", "model", "none"),
		MaxConcurrency: int(o.integer("max_concurrency", 1, maxInt32, 0)),
		OutputPerInput: o.choice("outputs", "joined", "per_input") == "per_input",
		Strict: o.choice("admission", AdvisoryAdmission, StrictAdmission) ==
			StrictAdmission,
	}
	x.Parameters = store.Parameters{Defaults: readRules(o, "defaults"),
		Overrides: readRules(o, "overrides")}
	x.Parameters.Check, x.Options.CheckAttempts = readCheck(o)
	x.Options.RetryAttempts, x.Options.RetryOn = readRetry(o, "retry")
	x.Options.Canary, x.Options.CanaryMaxFailedRatio = readCanary(o, "canary")
	x.Options.InputURL = readBucketURL(o, inputURLKey)
	x.CSV = readCSV(o, csvKey)
	if x.CSV != nil && x.Options.InputURL == "" {
		o.wrongValue(csvKey, "it is for an object whose name ends in .csv; name one in '%s'.",
			inputURLParam)
	}
	if x.Options.OutputURL = readBucketURL(o, outputURLKey); x.Options.OutputURL != "" &&
		!strings.HasSuffix(x.Options.OutputURL, "/") {
		o.wrongValue(outputURLKey, "%s names an object; end it in a slash, for results below it.",
			quoted(x.Options.OutputURL))
	}
	return x
}

// maxShownOptions limits the bytes of a batch's `tidefill` object in a listing.
const maxShownOptions = 4 << 10

// shownOptions returns the part of a `tidefill` object that listings show, and the names of the
// members that they do not: parameters, the check, and all members if the rest is still too long.
func shownOptions(
	given json.RawMessage, members map[string]json.RawMessage,
) (shown json.RawMessage, omitted []string) {
	rest := make(map[string]json.RawMessage, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name == "defaults" || name == "overrides" || name == checkKey {
			omitted = append(omitted, name)
		} else {
			rest[name] = members[name]
		}
	}
	if omitted == nil && len(given) <= maxShownOptions {
		return given, nil
	}
	shown, err := json.Marshal(rest)
	if err != nil {
		panic(err) // cannot fail: all members are valid JSON
	}
	if len(shown) > maxShownOptions {
		return json.RawMessage("{}"), slices.Sorted(maps.Keys(members))
	}
	return shown, omitted
}

// maxReference limits the bytes of the object that names a template and a profile: dispatchers hold
// it for each batch.
const maxReference = 16 << 10

// checkOptions returns an error for a `tidefill` or an `aibrix` object that is too large.
func (s *Server) checkOptions(x extensions) error {
	if x.Reference != nil && len(x.Reference.given) > maxReference {
		path := strings.TrimSuffix(x.Reference.path, ".")
		return invalid(path, "invalid_value", "Invalid '%s': it has %d bytes; the limit is %d.",
			path, len(x.Reference.given), maxReference)
	}
	if len(x.Given) <= s.config().MaxOptionsBytes {
		return nil
	}
	return invalid(extensionsKey, "invalid_value",
		"Invalid '%s': it has %d bytes; the limit is %d. Write what differs from line to line "+
			"into the lines.",
		extensionsKey, len(x.Given), s.config().MaxOptionsBytes)
}

const (
	maxInt32 = 1<<31 - 1
	maxInt53 = 1<<53 - 1 // the largest integer that JavaScript represents exactly
)

func readFileIDs(o *jsonObject, key string) []string {
	elements, ok := o.list(key, maxInputs)
	if !ok {
		return nil
	}
	ids := make([]string, len(elements))
	seen := make(map[string]int, len(elements))
	for i, raw := range elements {
		at := fmt.Sprintf("%s[%d]", key, i)
		if json.Unmarshal(raw, &ids[i]) != nil || ids[i] == "" {
			o.wrongType(at, "the id of a file", raw)
			return nil
		}
		if first, twice := seen[ids[i]]; twice {
			o.wrongValue(at, "%s is the same file as %s[%d]; name each file once.",
				quoted(ids[i]), key, first)
			return nil
		}
		seen[ids[i]] = i
	}
	return ids
}

// readRetry reads the number of attempts at a line, and the statuses after which it is sent again.
func readRetry(o *jsonObject, key string) (attempts int, on []int) {
	retry, ok := o.object(key)
	if !ok {
		return 0, nil
	}
	attempts = int(retry.integer("attempts", 1, 100, 0))
	elements, _ := retry.list("on", 200)
	for i, raw := range elements {
		on = append(on, int(retry.integerOf(fmt.Sprintf("on[%d]", i), raw, 400, 599)))
	}
	_ = retry.finish()
	return attempts, on
}

// canaryTolerance is the default share of canary lines that may fail. If more than half of them
// fail, the input is probably wrong.
const canaryTolerance = 0.5

// readCanary reads either a number of lines, or an object with that number and the share of them
// that may fail.
func readCanary(o *jsonObject, key string) (lines int, tolerance float64) {
	raw, ok := o.value(key)
	if !ok {
		return 0, 0
	}
	if isNumber(raw) {
		return int(o.integerOf(key, raw, 1, maxInt32)), canaryTolerance
	}
	canary, ok := o.objectOf(key, raw)
	if !ok {
		return 0, 0
	}
	lines = int(canary.integer("lines", 1, maxInt32, 0))
	if !canary.has("lines") {
		canary.missing("lines")
	}
	tolerance = canary.ratio("max_failed_ratio", false, canaryTolerance)
	_ = canary.finish()
	return lines, tolerance
}

// The scopes of parameter rules. An object with one of these keys may have no others; an object
// with none of them has parameters for all lines. No inference parameter of a supported endpoint
// has one of these names.
const (
	scopeAll     = "all"
	scopeByURL   = "by_url"
	scopeByModel = "by_model"
)

// readRules reads defaults or overrides of inference parameters. General rules come before narrower
// ones, which win when the rules are applied in order.
func readRules(o *jsonObject, key string) []store.ParameterRule {
	rules, ok := o.object(key)
	if !ok {
		return nil
	}
	if !scoped(rules) {
		return appendRule(nil, rules, "", "")
	}
	var read []store.ParameterRule
	if all, ok := rules.object(scopeAll); ok {
		read = appendRule(read, all, "", "")
	}
	if byURL, ok := rules.object(scopeByURL); ok {
		for _, url := range byURL.keys() {
			if _, known := batchfile.LookupEndpoint(url); !known {
				byURL.wrongValue(url, "not a supported endpoint; use one of %s.", endpointList())
			}
			if parameters, ok := byURL.objectOf(url, byURL.members[url]); ok {
				read = appendRule(read, parameters, url, "")
			}
		}
	}
	if byModel, ok := rules.object(scopeByModel); ok {
		for _, model := range byModel.keys() {
			if model == "" {
				byModel.wrongValue(model, "the name of a model is empty.")
			}
			if parameters, ok := byModel.objectOf(model, byModel.members[model]); ok {
				read = appendRule(read, parameters, "", model)
			}
		}
	}
	_ = rules.finish()
	return read
}

func scoped(rules *jsonObject) bool {
	for _, scope := range []string{scopeAll, scopeByURL, scopeByModel} {
		if _, ok := rules.members[scope]; ok {
			return true
		}
	}
	return false
}

// appendRule reads the parameters of one scope. It refuses model, which decides where a line runs
// and was counted at upload, and stream, since batch lines have no streamed answers.
func appendRule(
	rules []store.ParameterRule, parameters *jsonObject, url, model string,
) []store.ParameterRule {
	names := parameters.keys()
	for _, name := range names {
		switch name {
		case "":
			parameters.wrongValue(name, "the name of a parameter is empty.")
		case "model", "stream":
			parameters.wrongValue(name,
				"'%s' cannot be a default or an override; write it into the lines.", name)
		}
	}
	if len(names) == 0 {
		return rules
	}
	if _, err := batchfile.EditBody(nil, []byte("{}"), nil, parameters.members); err != nil {
		parameters.fail("", "invalid_value", "Invalid parameters: %v.", err)
	}
	return append(rules, store.ParameterRule{URL: url, Model: model,
		Parameters: parameters.members})
}
