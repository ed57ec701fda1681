package batchfile

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"
)

// maxModelName bounds the bytes of a model's name; longer ones are no names.
const maxModelName = 512

// Scanner checks a batch input file while its bytes stream by, and writes the line index. Faults of the content are
// collected, not returned: the upload goes on, and whoever creates a batch from the file is told all of them.
//
// Only lines without a fault enter the index, so the index of a file without faults holds every line.
type Scanner struct {
	limits Limits
	index  *indexWriter
	failed error // of the index; sticks

	carry    []byte // the beginning of a line whose end has not come yet
	offset   int64  // of the current line
	physical uint32 // lines begun before the current one

	request request
	ids     idSet
	models  map[string]uint16
	urls    map[string]uint16
	scratch []byte // decoded text of the value under the eye

	summary Summary
}

// NewScanner returns a scanner that writes the line index to index.
func NewScanner(index io.Writer, limits Limits) *Scanner {
	return &Scanner{
		limits: limits.withDefaults(),
		index:  newIndexWriter(index),
		ids:    newIDSet(),
		models: make(map[string]uint16),
		urls:   make(map[string]uint16),
	}
}

// Write takes the next bytes of the file, in chunks of any size. It fails only if the index can't be written.
func (s *Scanner) Write(p []byte) (int, error) {
	n := len(p)
	scanned := max(0, s.limits.MaxBytes-s.summary.Bytes)
	s.summary.Bytes += int64(n)
	if scanned < int64(n) { // the file is refused as it is; the rest is only counted
		p = p[:scanned]
	}
	for s.failed == nil {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			s.carry = append(s.carry, p...)
			break
		}
		line := p[:end]
		if len(s.carry) > 0 {
			s.carry = append(s.carry, line...)
			line = s.carry
		}
		s.line(line)
		s.offset += int64(len(line)) + 1
		s.carry = s.carry[:0]
		p = p[end+1:]
	}
	if s.failed != nil {
		return 0, fmt.Errorf("write line index: %w", s.failed)
	}
	return n, nil
}

// Finish ends the file: it judges what only the whole can show and closes the index.
func (s *Scanner) Finish() (Summary, error) {
	sum := &s.summary
	if len(s.carry) > 0 && sum.Bytes <= s.limits.MaxBytes {
		s.line(s.carry)
		s.carry = nil
	}
	if sum.Bytes > s.limits.MaxBytes {
		s.wholeFault(CodeFileTooLarge, fmt.Sprintf(
			"The file has %d bytes, the limit is %d; split it into several batches.", sum.Bytes, s.limits.MaxBytes))
	}
	if sum.Lines > s.limits.MaxLines {
		s.wholeFault(CodeTooManyTasks, fmt.Sprintf(
			"The file has %d requests, the limit is %d; split it into several batches.", sum.Lines, s.limits.MaxLines))
	}
	if sum.Lines == 0 && sum.Bytes <= s.limits.MaxBytes {
		s.wholeFault(CodeEmptyFile, "The file has no requests; write one JSON object per line.")
	}
	models := make([]string, len(sum.Models))
	for i, m := range sum.Models {
		models[i] = m.Name
	}
	urls := make([]string, len(sum.URLs))
	for i, u := range sum.URLs {
		urls[i] = u.URL
	}
	if s.failed == nil {
		s.failed = s.index.finish(models, urls)
	}
	if s.failed != nil {
		return Summary{}, fmt.Errorf("write line index: %w", s.failed)
	}
	return *sum, nil
}

var byteOrderMark = []byte("\xEF\xBB\xBF")

func (s *Scanner) line(line []byte) {
	s.physical++
	offset := s.offset
	if offset == 0 && bytes.HasPrefix(line, byteOrderMark) {
		line = line[len(byteOrderMark):]
		offset += int64(len(byteOrderMark))
	}
	if skipSpace(line, 0) == len(line) {
		return
	}
	s.summary.Lines++
	if s.summary.Lines > s.limits.MaxLines { // the file is refused as it is; the rest is only counted
		return
	}
	if !utf8.Valid(line) {
		s.lineFault(CodeInvalidJSON, noField,
			"This line is not parseable as valid JSON. Byte %d is not UTF-8; save the file as UTF-8.", invalidUTF8(line)+1)
		return
	}
	r := &s.request
	if at, err := r.parse(line); err != nil {
		s.lineFault(CodeInvalidJSON, noField, "This line is not parseable as valid JSON. Byte %d: %v.", at+1, err)
		return
	}
	if line[r.object.start] != '{' {
		s.lineFault(CodeInvalidRequest, noField,
			"This line is not a JSON object; write {\"custom_id\", \"method\", \"url\", \"body\"} on each line.")
		return
	}
	s.judge(line, offset)
}

// judge checks the fields of a line that is a JSON object, and enters it into the index if all are right.
func (s *Scanner) judge(line []byte, offset int64) {
	r, before := &s.request, s.summary.FaultCount
	for f := range fieldCount {
		if r.repeated[f] {
			s.lineFault(CodeDuplicateKey, f, "This line gives %s more than once; keep one.", f)
		}
	}
	s.checkID(line)
	s.checkMethod(line)
	endpoint := s.checkURL(line)
	hasModel := s.checkBody(line, endpoint)
	if s.summary.FaultCount > before {
		return
	}
	model, ok := s.model(line, hasModel)
	if !ok {
		return
	}

	body, id := r.values[fieldBody], r.values[fieldCustomID]
	size, prefix := r.prompt(line, endpoint)
	maxTokens := r.maxTokens(line, endpoint)
	record := Line{
		Physical:    s.physical,
		Offset:      offset + int64(r.object.start),
		Length:      uint32(r.object.len()),
		BodyOffset:  uint32(body.start - r.object.start),
		BodyLength:  uint32(body.len()),
		IDOffset:    uint32(id.start - r.object.start),
		IDLength:    uint32(id.len()),
		Model:       model,
		URL:         s.url(endpoint.URL),
		MaxTokens:   maxTokens,
		PromptBytes: uint32(size),
		PrefixHash:  prefix,
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
		s.summary.EmbeddingInputs += inputs(r.values[fieldInput].of(line))
	}
	if err := s.index.append(&record); err != nil {
		s.failed = err
	}
}

func (s *Scanner) checkID(line []byte) {
	literal, ok := s.stringOf(line, fieldCustomID, "give each line a custom_id, a string of its own")
	if !ok {
		return
	}
	id := s.text(literal)
	if first, added := s.ids.add(id, s.physical); !added {
		s.lineFault(CodeDuplicateCustomID, fieldCustomID,
			"The custom_id %s was already used on line %d; give each line one of its own.", shown(id), first)
	}
}

func (s *Scanner) checkMethod(line []byte) {
	literal, ok := s.stringOf(line, fieldMethod, `set it to "POST"`)
	if !ok {
		return
	}
	if method := s.text(literal); string(method) != "POST" {
		s.lineFault(CodeInvalidValue, fieldMethod, `The method is %s; the only method is "POST".`, shown(method))
	}
}

// checkURL returns the line's endpoint, nil if it has none.
func (s *Scanner) checkURL(line []byte) *Endpoint {
	literal, ok := s.stringOf(line, fieldURL, "set it to the batch's endpoint")
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
		"The url %s is not one that batches serve; set it to the batch's endpoint, such as /v1/chat/completions.", shown(url))
	return nil
}

// checkBody reports whether the body names a model.
func (s *Scanner) checkBody(line []byte, endpoint *Endpoint) (hasModel bool) {
	body := s.request.values[fieldBody]
	if !body.present() {
		s.lineFault(CodeMissing, fieldBody, "Missing required parameter: 'body'; set it to the request's JSON object.")
		return false
	}
	if line[body.start] != '{' {
		s.lineFault(CodeInvalidType, fieldBody, "The body is %s; it must be the request's JSON object.", kind(line[body.start]))
		return false
	}
	if stream := s.request.values[fieldStream]; stream.present() {
		switch c := line[stream.start]; c {
		case 't':
			s.lineFault(CodeStream, fieldStream, "A batch has nobody to stream to; leave out stream or set it to false.")
		case 'f', 'n':
		default:
			s.lineFault(CodeInvalidType, fieldStream, "body.stream is %s; leave it out or set it to false.", kind(c))
		}
	}
	if !s.request.values[fieldModel].present() && endpoint != nil && endpoint.ModelOptional {
		return false
	}
	_, ok := s.stringOf(line, fieldModel, "set it to the name of a model")
	return ok
}

// stringOf returns the literal of a field that must be a string and not empty, or notes the fault and the mend.
func (s *Scanner) stringOf(line []byte, f field, mend string) (literal []byte, ok bool) {
	value := s.request.values[f].of(line)
	switch {
	case len(value) == 0:
		s.lineFault(CodeMissing, f, "Missing required parameter: '%s'; %s.", f, mend)
	case value[0] != '"':
		s.lineFault(CodeInvalidType, f, "%s is %s, not a string; %s.", f, kind(value[0]), mend)
	case len(value) == len(`""`):
		s.lineFault(CodeInvalidValue, f, "%s is empty; %s.", f, mend)
	default:
		return value, true
	}
	return nil, false
}

// model returns the number of the line's model, a new one if need be.
func (s *Scanner) model(line []byte, named bool) (number uint16, ok bool) {
	var name []byte
	if named {
		name = s.text(s.request.values[fieldModel].of(line))
	}
	if number, ok := s.models[string(name)]; ok {
		return number, true
	}
	if len(name) > maxModelName {
		s.lineFault(CodeInvalidValue, fieldModel, "The model's name has %d bytes, the limit is %d.", len(name), maxModelName)
		return 0, false
	}
	if len(s.summary.Models) == s.limits.MaxModels {
		s.lineFault(CodeTooManyModels, fieldModel, "The model %s is one too many: a file may name %d models; split it.",
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
		s.summary.URLs = append(s.summary.URLs, URLSummary{URL: url, FirstLine: int(s.physical)})
		s.urls[url] = number
	}
	return number
}

func (r *request) maxTokens(line []byte, e *Endpoint) uint32 {
	for _, f := range e.maxTokens {
		if n := count(r.values[f].of(line)); n > 0 {
			return uint32(min(n, math.MaxUint32))
		}
	}
	return 0
}

// text returns what a string literal says; a decoded one lives in the scanner's scratch space until the next call.
func (s *Scanner) text(literal []byte) []byte {
	inner := inside(literal)
	if !escaped(inner) {
		return inner
	}
	s.scratch = appendText(s.scratch[:0], inner)
	return s.scratch
}

// inputs counts the texts in an embedding request's input: a string or an array of tokens is one.
func inputs(input []byte) int64 {
	if len(input) == 0 || input[0] != '[' {
		return 1
	}
	i, n := skipSpace(input, 1), int64(0)
	if c := input[i]; c != '"' && c != '[' {
		return 1
	}
	for {
		i, _ = skipValue(input, i, maxDepth)
		n++
		if i = skipSpace(input, i); input[i] == ']' {
			return n
		}
		i = skipSpace(input, i+1)
	}
}

func (s *Scanner) lineFault(code string, f field, format string, args ...any) {
	s.summary.FaultCount++
	if len(s.summary.Faults) < s.limits.MaxFaults {
		s.summary.Faults = append(s.summary.Faults,
			Fault{Code: code, Message: fmt.Sprintf(format, args...), Param: f.String(), Line: int(s.physical)})
	}
}

// wholeFault puts a fault of the whole file first, where it is seen and never dropped for a line's.
func (s *Scanner) wholeFault(code, message string) {
	s.summary.FaultCount++
	faults := slices.Insert(s.summary.Faults, 0, Fault{Code: code, Message: message})
	s.summary.Faults = faults[:min(len(faults), max(1, s.limits.MaxFaults))]
}

// kind names the type of the JSON value that begins with c.
func kind(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// invalidUTF8 returns the position of the first byte that is not UTF-8.
func invalidUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}
