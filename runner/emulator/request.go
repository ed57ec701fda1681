package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/tidefill/tidefill/runner"
	"github.com/tidefill/tidefill/simulator/engine"
)

// body is what the routes read of a request; the rest is taken and ignored, as
// an engine's sampling parameters do not change its timing.
type body struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`

	Messages       []message       `json:"messages"`
	Prompt         json.RawMessage `json:"prompt"`
	PromptTokenIDs []int64         `json:"prompt_token_ids"`
	Input          json.RawMessage `json:"input"`
	Instructions   string          `json:"instructions"`
	Query          string          `json:"query"`
	Documents      json.RawMessage `json:"documents"`
	TopN           int             `json:"top_n"`
	Text1          json.RawMessage `json:"text_1"`
	Text2          json.RawMessage `json:"text_2"`

	MaxTokens           *int   `json:"max_tokens"`
	MaxCompletionTokens *int   `json:"max_completion_tokens"`
	MaxOutputTokens     *int   `json:"max_output_tokens"`
	MinTokens           int    `json:"min_tokens"`
	IgnoreEOS           bool   `json:"ignore_eos"`
	N                   *int   `json:"n"`
	Priority            *int   `json:"priority"`
	Dimensions          int    `json:"dimensions"`
	EncodingFormat      string `json:"encoding_format"`
}

// Why an answer ends.
const (
	finishStop   = "stop"
	finishLength = "length"
)

// maxSequences bounds how many sequences one request may ask for.
const maxSequences = 2048

// sequence is one prompt and the output it will get.
type sequence struct {
	prompt prompt
	tokens int    // of the prompt
	seed   uint64 // of the output's length and content
	output int    // tokens
	finish string
}

// job is a request understood.
type job struct {
	body
	sequences []sequence
	limit     int // of output tokens, as the request wants it; 0: none
	priority  int
	salt      uint64
	caching   bool
}

// parse reads a body as the route does.
func (s *Server) parse(raw []byte, header http.Header, r route) (*job, *failure) {
	j := &job{caching: true}
	if err := json.Unmarshal(raw, &j.body); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return nil, badRequest(wrong.Field, "Invalid type for '%s': got %s.", wrong.Field,
				wrong.Value)
		}
		f := badRequest("", "We could not parse the JSON body of your request: %v.", err)
		f.body.Code = "invalid_json"
		return nil, f
	}
	if j.Model == "" {
		return nil, badRequest("model", "You must provide a model parameter.")
	}
	if s.models[j.Model] == nil || s.ill.refuses(j.Model) {
		return nil, notFound(j.Model)
	}
	if f := j.readHeader(header); f != nil {
		return nil, f
	}
	prompts, f := r.read(j)
	if f != nil {
		return nil, f
	}
	_, generates := r.reply.(streamReply)
	choices := 1
	if generates {
		if choices, f = j.choices(); f != nil {
			return nil, f
		}
	} else if j.Stream {
		return nil, badRequest("stream", "This route does not stream.")
	}
	if n := len(prompts) * choices; n > maxSequences {
		return nil, badRequest("", "The request asks for %d sequences, at most %d are served.", n,
			maxSequences)
	}
	for _, p := range prompts {
		seed := mix(hash(fnvOffset^s.config.Seed, p.data))
		for range choices {
			q := sequence{prompt: p, tokens: p.tokens(), seed: seed, output: 1, finish: finishStop}
			room := s.contextLength() - q.tokens
			if room < 1 {
				return nil, tooLong(q.tokens, s.contextLength())
			}
			if generates {
				q.draw(j, s.config.Output, room)
			}
			j.sequences = append(j.sequences, q)
			seed = mix(seed + 1)
		}
	}
	return j, nil
}

// draw decides how much is written: a log-normal length within the limits.
func (q *sequence) draw(j *job, lengths Lengths, room int) {
	if j.limit > 0 {
		room = min(room, j.limit)
	}
	want := lengths.draw(rand.New(rand.NewPCG(q.seed, 4)))
	if j.IgnoreEOS && j.limit > 0 {
		want = j.limit
	}
	want = max(want, j.MinTokens)
	q.output, q.finish = want, finishStop
	if want > room || j.IgnoreEOS {
		q.output, q.finish = min(want, room), finishLength
	}
}

// priorities by header; the lower goes first, and 0 is interactive traffic's.
var priorities = map[runner.Priority]int{
	"": 0, runner.PriorityHigh: -10, runner.PriorityNormal: 0, runner.PriorityLow: 10,
}

func (j *job) readHeader(h http.Header) *failure {
	name := runner.Priority(h.Get(runner.HeaderPriority))
	priority, ok := priorities[name]
	if !ok {
		return badRequest(runner.HeaderPriority, "%s is %q, want high, normal or low.",
			runner.HeaderPriority, name)
	}
	j.priority = priority
	if j.Priority != nil {
		j.priority = *j.Priority
	}
	switch mode := runner.CacheMode(h.Get(runner.HeaderCacheMode)); mode {
	case "", runner.CachePrefix, runner.CacheAuto:
	case runner.CacheNone:
		j.caching = false
	default:
		return badRequest(runner.HeaderCacheMode, "%s is %q, want prefix, none or auto.",
			runner.HeaderCacheMode, mode)
	}
	tag := h.Get(runner.HeaderCacheTag)
	if len(tag) > runner.MaxCacheTag {
		return badRequest(runner.HeaderCacheTag, "%s has %d characters, at most %d are allowed.",
			runner.HeaderCacheTag, len(tag), runner.MaxCacheTag)
	}
	j.salt = hash(fnvOffset, tag)
	return nil
}

func (j *job) choices() (int, *failure) {
	for _, limit := range []struct {
		name  string
		value *int
	}{{"max_tokens", j.MaxTokens}, {"max_completion_tokens", j.MaxCompletionTokens},
		{"max_output_tokens", j.MaxOutputTokens}} {
		if limit.value == nil {
			continue
		}
		if *limit.value < 1 {
			return 0, badRequest(limit.name, "%s is %d, want at least 1.", limit.name, *limit.value)
		}
		j.limit = *limit.value
	}
	if j.N == nil {
		return 1, nil
	}
	if *j.N < 1 || *j.N > 128 {
		return 0, badRequest("n", "n is %d, want 1 to 128.", *j.N)
	}
	return *j.N, nil
}

// requests is the job as the engine takes it.
func (j *job) requests() []engine.Request {
	all := make([]engine.Request, len(j.sequences))
	for i, q := range j.sequences {
		all[i] = engine.Request{Prompt: q.tokens, Output: q.output, Priority: j.priority}
		if j.caching {
			all[i].Prefix = q.prompt.blocks(j.salt)
		}
	}
	return all
}

func missing(param string) *failure {
	return badRequest(param, "Missing required parameter: '%s'.", param)
}

func readChat(j *job) ([]prompt, *failure) {
	if len(j.PromptTokenIDs) > 0 {
		return []prompt{tokenIDs(j.PromptTokenIDs)}, nil
	}
	if len(j.Messages) == 0 {
		return nil, missing("messages")
	}
	p, err := conversation(j.Messages)
	if err != nil {
		return nil, badRequest("messages", "messages: %v.", err)
	}
	return []prompt{p}, nil
}

func readCompletion(j *job) ([]prompt, *failure) {
	if len(j.PromptTokenIDs) > 0 {
		return []prompt{tokenIDs(j.PromptTokenIDs)}, nil
	}
	return required("prompt", j.Prompt)
}

func readResponse(j *job) ([]prompt, *failure) {
	if first(j.Input) == 0 {
		return nil, missing("input")
	}
	j.N = nil // has no meaning here
	p := text(j.Instructions)
	if first(j.Input) == '"' {
		if err := p.add(j.Input); err != nil {
			return nil, badRequest("input", "input: %v.", err)
		}
		return []prompt{p}, nil
	}
	var items []message
	if json.Unmarshal(j.Input, &items) != nil || len(items) == 0 {
		return nil, badRequest("input", "input must be a string or an array of items.")
	}
	talk, err := conversation(items)
	if err != nil {
		return nil, badRequest("input", "input: %v.", err)
	}
	talk.data = append(p.data, talk.data...)
	return []prompt{talk}, nil
}

func readEmbedding(j *job) ([]prompt, *failure) {
	if j.Dimensions < 0 || j.Dimensions > 8192 {
		return nil, badRequest("dimensions", "dimensions is %d, want 1 to 8192.", j.Dimensions)
	}
	switch j.EncodingFormat {
	case "", "float", "base64":
	default:
		return nil, badRequest("encoding_format", "encoding_format is %q, want float or base64.",
			j.EncodingFormat)
	}
	return required("input", j.Input)
}

func readModeration(j *job) ([]prompt, *failure) { return required("input", j.Input) }

func readRerank(j *job) ([]prompt, *failure) {
	if j.Query == "" {
		return nil, missing("query")
	}
	documents, f := required("documents", j.Documents)
	return pairs([]prompt{text(j.Query)}, documents), f
}

func readScore(j *job) ([]prompt, *failure) {
	left, f := required("text_1", j.Text1)
	if f != nil {
		return nil, f
	}
	right, f := required("text_2", j.Text2)
	if f != nil {
		return nil, f
	}
	if len(left) != 1 && len(left) != len(right) {
		return nil, badRequest("text_1", "text_1 has %d and text_2 %d texts; want one, or as many.",
			len(left), len(right))
	}
	return pairs(left, right), nil
}

// pairs joins each right text with its left one, or with the only left one.
func pairs(left, right []prompt) []prompt {
	all := make([]prompt, len(right))
	for i, r := range right {
		l := left[i%len(left)]
		all[i] = prompt{data: fmt.Appendf(nil, "%s\n%s", l.data, r.data), extra: l.extra + r.extra}
	}
	return all
}

func required(param string, raw json.RawMessage) ([]prompt, *failure) {
	if c := first(raw); c == 0 || c == 'n' {
		return nil, missing(param)
	}
	all, err := inputs(raw)
	if err != nil {
		return nil, badRequest(param, "%s %v.", param, err)
	}
	if len(all) == 0 {
		return nil, badRequest(param, "%s is empty.", param)
	}
	return all, nil
}
