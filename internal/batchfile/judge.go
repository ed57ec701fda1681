package batchfile

import (
	"fmt"
	"hash/crc32"
	"slices"
	"unicode/utf8"
)

// judge checks the fields of a line that is valid JSON, and adds the line to the index if they have
// no fault.
func (s *Scanner) judge(r *request) {
	if r.first != '{' {
		s.lineFault(CodeInvalidRequest, noField,
			"This line is not a JSON object; write "+
				`{"custom_id", "method", "url", "body"} on each line.`)
		return
	}
	before := s.summary.FaultCount
	for f := range fieldCount {
		if r.repeated[f] {
			s.lineFault(CodeDuplicateKey, f, "This line gives %s more than once; keep one.", f)
		}
	}
	s.checkID(r)
	s.checkMethod(r)
	endpoint := s.checkURL(r)
	hasModel := s.checkBody(r, endpoint)
	if s.summary.FaultCount > before {
		return
	}
	model, ok := s.model(r, hasModel)
	if !ok {
		return
	}

	body, id := r.values[fieldBody], r.values[fieldCustomID]
	size, prefix := r.prompt(endpoint)
	maxTokens := r.maxTokens(endpoint)
	record := Line{
		Row:         s.row,
		Offset:      s.offset + int64(r.span.start),
		Length:      uint32(r.span.len()),
		BodyOffset:  uint32(body.start - r.span.start),
		BodyLength:  uint32(body.len()),
		IDOffset:    uint32(id.start - r.span.start),
		IDLength:    uint32(id.len()),
		Model:       model,
		URL:         s.url(endpoint.URL),
		MaxTokens:   maxTokens,
		PromptBytes: uint32(size),
		PrefixHash:  prefix,
		Checksums: Checksums{Object: r.crc, ID: crc32.Checksum(r.beginning(fieldCustomID),
			castagnoli)},
	}
	m := &s.summary.Models[model]
	m.Lines++
	m.PromptBytes += int64(size)
	m.MaxTokens += int64(maxTokens)
	if maxTokens > 0 {
		m.CappedLines++
	}
	s.summary.URLs[record.URL].Lines++
	if endpoint.URL == "/v1/embeddings" {
		s.summary.EmbeddingInputs += r.inputs()
	}
	if err := s.index.append(&record); err != nil {
		s.failed = err
	}
}

func (s *Scanner) checkID(r *request) {
	literal, ok := s.stringOf(r, fieldCustomID, "give each line a custom_id, a string of its own")
	if !ok {
		return
	}
	id := s.text(literal)
	if first, added := s.ids.add(id, s.row); !added {
		s.lineFault(CodeDuplicateCustomID, fieldCustomID,
			"The custom_id %s was already used on line %d; give each line one of its own.",
			shown(id), first)
	}
}

func (s *Scanner) checkMethod(r *request) {
	literal, ok := s.stringOf(r, fieldMethod, `set it to "POST"`)
	if !ok {
		return
	}
	if method := s.text(literal); string(method) != "POST" {
		s.lineFault(CodeInvalidValue, fieldMethod, `The method is %s; the only method is "POST".`,
			shown(method))
	}
}

// checkURL returns the endpoint of the line, or nil.
func (s *Scanner) checkURL(r *request) *Endpoint {
	literal, ok := s.stringOf(r, fieldURL, "set it to the batch's endpoint")
	if !ok {
		return nil
	}
	url := s.text(literal)
	for i := range endpoints {
		if string(url) == endpoints[i].URL {
			return &endpoints[i]
		}
	}
	s.lineFault(CodeURLMismatch, fieldURL,
		"The url %s is not one that batches serve; set it to the batch's endpoint, "+
			"such as /v1/chat/completions.", shown(url))
	return nil
}

// checkBody reports whether the body names a model.
func (s *Scanner) checkBody(r *request, endpoint *Endpoint) (hasModel bool) {
	if !r.values[fieldBody].present() {
		s.lineFault(CodeMissing, fieldBody,
			"Missing required parameter: 'body'; set it to the request's JSON object.")
		return false
	}
	if body := r.beginning(fieldBody); body[0] != '{' {
		s.lineFault(CodeInvalidType, fieldBody,
			"The body is %s; it must be the request's JSON object.", Kind(body))
		return false
	}
	if stream := r.beginning(fieldStream); len(stream) > 0 {
		switch stream[0] {
		case 't':
			s.lineFault(CodeStream, fieldStream,
				"A batch can't stream; leave out stream or set it to false.")
		case 'f', 'n':
		default:
			s.lineFault(CodeInvalidType, fieldStream,
				"body.stream is %s; leave it out or set it to false.", Kind(stream))
		}
	}
	if !r.values[fieldModel].present() && endpoint != nil && endpoint.modelOptional {
		return false
	}
	literal, ok := s.stringOf(r, fieldModel, "set it to the name of a model")
	if ok && !utf8.Valid(s.text(literal)) {
		// stores and lists of models would have another name
		s.lineFault(CodeInvalidValue, fieldModel, `body.model contains half a character: one of `+
			`\ud800 to \udfff without its other half; set it to the name of a model.`)
		return false
	}
	return ok
}

// stringOf returns the literal of a field that must be a non-empty string, or records the fault
// with its remedy.
func (s *Scanner) stringOf(r *request, f field, remedy string) (literal []byte, ok bool) {
	value, size := r.beginning(f), r.values[f].len()
	switch {
	case size == 0:
		s.lineFault(CodeMissing, f, "Missing required parameter: '%s'; %s.", f, remedy)
	case value[0] != '"':
		s.lineFault(CodeInvalidType, f, "%s is %s, not a string; %s.", f, Kind(value), remedy)
	case size == len(`""`):
		s.lineFault(CodeInvalidValue, f, "%s is empty; %s.", f, remedy)
	case size > textLimit(f)+len(`""`):
		s.lineFault(CodeInvalidValue, f, "%s has %d bytes, the limit is %d; shorten it.", f,
			size-len(`""`), textLimit(f))
	default:
		return value, true
	}
	return nil, false
}

// model returns the number of the line's model. named is false if the line names none.
func (s *Scanner) model(r *request, named bool) (number uint16, ok bool) {
	var name []byte
	if named {
		name = s.text(r.beginning(fieldModel))
	}
	if number, ok := s.models[string(name)]; ok {
		return number, true
	}
	if len(s.summary.Models) == s.limits.MaxModels {
		s.lineFault(CodeTooManyModels, fieldModel,
			"The model %s is one too many: a file may name %d models; split it.",
			shown(name), s.limits.MaxModels)
		return 0, false
	}
	number = uint16(len(s.summary.Models))
	s.summary.Models = append(s.summary.Models, ModelSummary{Name: string(name)})
	s.models[string(name)] = number
	return number, true
}

func (s *Scanner) url(url string) uint16 {
	number, ok := s.urls[url]
	if !ok {
		number = uint16(len(s.summary.URLs))
		s.summary.URLs = append(s.summary.URLs, URLSummary{URL: url, FirstLine: int(s.row)})
		s.urls[url] = number
	}
	return number
}

// text returns the text of a string literal. It is valid until the next call.
func (s *Scanner) text(literal []byte) []byte {
	inner := inside(literal)
	if !escaped(inner) {
		return inner
	}
	s.scratch = appendText(s.scratch[:0], inner)
	return s.scratch
}

func (s *Scanner) lineFault(code string, f field, format string, args ...any) {
	s.summary.FaultCount++
	if len(s.summary.Faults) < s.limits.MaxFaults {
		s.summary.Faults = append(s.summary.Faults,
			Fault{Code: code, Message: fmt.Sprintf(format, args...), Param: f.String(),
				Line: int(s.row)})
	}
}

// fileFault puts a fault of the file first, so that faults of lines can't displace it.
func (s *Scanner) fileFault(code, message string) {
	s.summary.FaultCount++
	faults := slices.Insert(s.summary.Faults, 0, Fault{Code: code, Message: message})
	s.summary.Faults = faults[:min(len(faults), max(1, s.limits.MaxFaults))]
}
