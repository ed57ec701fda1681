package emulator

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"

	"github.com/tidefill/tidefill/runner"
	"github.com/tidefill/tidefill/simulator/engine"
)

// body is what the routes read of a request. Other fields are ignored, since an engine's sampling
// parameters do not change its timing.
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

// Reasons why an output ends.
const (
	finishStop   = "stop"
	finishLength = "length"
)

// maxSequences is the greatest number of sequences that one request may ask for.
const maxSequences = 2048

// sequence is one prompt and its output.
type sequence struct {
	prompt prompt
	tokens int    // of the prompt
	seed   uint64 // of the output's length and content
	output int    // tokens
	finish string
}

// inference is a parsed request.
type inference struct {
	body
	sequences []sequence
	limit     int // of output tokens, from the request; 0: none
	priority  int
	salt      uint64
	caching   bool
}

// parse parses a body for the route.
func (s *Server) parse(raw []byte, header http.Header, r route) (*inference, *failure) {
	req := &inference{caching: true}
	if err := json.Unmarshal(raw, &req.body); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return nil, badRequest(wrong.Field, "Invalid type for '%s': got %s.", wrong.Field,
				wrong.Value)
		}
		f := badRequest("", "We could not parse the JSON body of your request: %v.", err)
		f.body.Code = "invalid_json"
		return nil, f
	}
	if req.Model == "" {
		return nil, badRequest("model", "You must provide a model parameter.")
	}
	if s.models[req.Model] == nil || s.injector.refuses(req.Model) {
		return nil, notFound(req.Model)
	}
	if f := req.readHeader(header); f != nil {
		return nil, f
	}
	prompts, f := r.read(req)
	if f != nil {
		return nil, f
	}
	_, generates := r.reply.(streamReply)
	choices := 1
	if generates {
		if choices, f = req.choices(); f != nil {
			return nil, f
		}
	} else if req.Stream {
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
				q.draw(req, s.config.Output, room)
			}
			req.sequences = append(req.sequences, q)
			seed = mix(seed + 1)
		}
	}
	return req, nil
}

// draw draws the length of the output, log-normal within the limits.
func (q *sequence) draw(req *inference, lengths Lengths, room int) {
	if req.limit > 0 {
		room = min(room, req.limit)
	}
	want := lengths.draw(rand.New(rand.NewPCG(q.seed, 4)))
	if req.IgnoreEOS && req.limit > 0 {
		want = req.limit
	}
	want = max(want, req.MinTokens)
	q.output, q.finish = want, finishStop
	if want > room || req.IgnoreEOS {
		q.output, q.finish = min(want, room), finishLength
	}
}

// priorities by header; lower goes first, and 0 is that of interactive traffic.
var priorities = map[runner.Priority]int{
	"": 0, runner.PriorityHigh: -10, runner.PriorityNormal: 0, runner.PriorityLow: 10,
}

func (req *inference) readHeader(h http.Header) *failure {
	name := runner.Priority(h.Get(runner.HeaderPriority))
	priority, ok := priorities[name]
	if !ok {
		return badRequest(runner.HeaderPriority, "%s is %q, want high, normal or low.",
			runner.HeaderPriority, name)
	}
	req.priority = priority
	if req.Priority != nil {
		req.priority = *req.Priority
	}
	switch mode := runner.CacheMode(h.Get(runner.HeaderCacheMode)); mode {
	case "", runner.CachePrefix, runner.CacheAuto:
	case runner.CacheNone:
		req.caching = false
	default:
		return badRequest(runner.HeaderCacheMode, "%s is %q, want prefix, none or auto.",
			runner.HeaderCacheMode, mode)
	}
	tag := h.Get(runner.HeaderCacheTag)
	if len(tag) > runner.MaxCacheTag {
		return badRequest(runner.HeaderCacheTag, "%s has %d characters, at most %d are allowed.",
			runner.HeaderCacheTag, len(tag), runner.MaxCacheTag)
	}
	req.salt = hash(fnvOffset, tag)
	return nil
}

func (req *inference) choices() (int, *failure) {
	for _, limit := range []struct {
		name  string
		value *int
	}{{"max_tokens", req.MaxTokens}, {"max_completion_tokens", req.MaxCompletionTokens},
		{"max_output_tokens", req.MaxOutputTokens}} {
		if limit.value == nil {
			continue
		}
		if *limit.value < 1 {
			return 0, badRequest(limit.name, "%s is %d, want at least 1.", limit.name, *limit.value)
		}
		req.limit = *limit.value
	}
	if req.N == nil {
		return 1, nil
	}
	if *req.N < 1 || *req.N > 128 {
		return 0, badRequest("n", "n is %d, want 1 to 128.", *req.N)
	}
	return *req.N, nil
}

// requests returns the engine's requests.
func (req *inference) requests() []engine.Request {
	all := make([]engine.Request, len(req.sequences))
	for i, q := range req.sequences {
		all[i] = engine.Request{Prompt: q.tokens, Output: q.output, Priority: req.priority}
		if req.caching {
			all[i].Prefix = q.prompt.blocks(req.salt)
		}
	}
	return all
}
