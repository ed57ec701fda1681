package batchfile

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"unicode/utf8"
)

// heldBytes bounds how much of a line is held from one write to the next. A longer line is read as
// it streams by.
const heldBytes = 64 << 10

// Scanner checks a batch input file while its bytes stream by, and writes the line index. Faults of
// the content are collected, not returned: the upload goes on, and whoever creates a batch from the
// file is told all of them.
//
// Only lines without a fault enter the index, so the index of a file without faults holds every
// line.
type Scanner struct {
	limits Limits
	index  *indexWriter
	failed error // of the index; sticks

	window   int       // heldBytes, or what a test asks for; at least a byte order mark
	carry    []byte    // the beginning of a line whose end has not come yet
	long     *longLine // the line under way if it is too long for carry; it goes round
	inLong   bool
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
		window: heldBytes,
		index:  newIndexWriter(index),
		ids:    newIDSet(),
		models: make(map[string]uint16),
		urls:   make(map[string]uint16),
	}
}

// Write takes the next bytes of the file, in chunks of any size. It fails only if the index can't
// be written.
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
			s.hold(p)
			break
		}
		s.endLine(p[:end])
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
	if (len(s.carry) > 0 || s.inLong) && sum.Bytes <= s.limits.MaxBytes {
		s.endLine(nil)
	}
	if sum.Bytes > s.limits.MaxBytes {
		s.wholeFault(CodeFileTooLarge, fmt.Sprintf(
			"The file has %d bytes, the limit is %d; split it into several batches.", sum.Bytes,
			s.limits.MaxBytes))
	}
	if sum.Lines > s.limits.MaxLines {
		s.wholeFault(CodeTooManyTasks, fmt.Sprintf(
			"The file has %d requests, the limit is %d; split it into several batches.", sum.Lines,
			s.limits.MaxLines))
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

// hold takes a piece of a line that goes on.
func (s *Scanner) hold(p []byte) {
	if !s.inLong && len(s.carry)+len(p) <= s.window {
		s.carry = append(s.carry, p...)
		return
	}
	s.stream(p)
}

// endLine takes the last piece of a line and judges the line.
func (s *Scanner) endLine(p []byte) {
	s.physical++
	switch {
	case s.inLong || len(s.carry)+len(p) > s.window && len(s.carry) > 0:
		s.stream(p)
		s.endLong()
		s.offset += int64(s.long.size) + 1
		return
	case len(s.carry) > 0:
		s.carry = append(s.carry, p...)
		p = s.carry
		s.carry = s.carry[:0]
	}
	s.offset += s.mark(&p)
	s.line(p)
	s.offset += int64(len(p)) + 1
}

var byteOrderMark = []byte("\xEF\xBB\xBF")

// mark cuts a byte order mark off the beginning of the file, and returns how many bytes it has.
func (s *Scanner) mark(p *[]byte) int64 {
	if s.offset > 0 || !bytes.HasPrefix(*p, byteOrderMark) {
		return 0
	}
	*p = (*p)[len(byteOrderMark):]
	return int64(len(byteOrderMark))
}

// line judges a line that is held whole.
func (s *Scanner) line(line []byte) {
	if !s.counted(skipSpace(line, 0) == len(line), len(line)) {
		return
	}
	if !utf8.Valid(line) {
		s.notUTF8(validPrefix(line))
		return
	}
	if at, err := s.request.parse(line); err != nil {
		s.notJSON(at, err)
		return
	}
	s.judge(&s.request)
}

// stream reads a piece of a line that is too long to be held.
func (s *Scanner) stream(p []byte) {
	if !s.inLong {
		p = s.beginLong(p)
	}
	s.feed(p)
}

// beginLong goes on with what is held of a line as a long one. It returns what is left of p.
func (s *Scanner) beginLong(p []byte) []byte {
	if s.long == nil {
		s.long = newLongLine()
	}
	s.long.reset()
	s.inLong = true
	if missing := min(len(p), max(0, len(byteOrderMark)-len(s.carry))); s.offset == 0 {
		s.carry = append(s.carry, p[:missing]...)
		p = p[missing:]
	}
	held := s.carry
	s.carry = s.carry[:0]
	s.offset += s.mark(&held)
	s.feed(held)
	return p
}

// feed reads a piece of a long line, unless the line has become longer than it may be.
func (s *Scanner) feed(p []byte) {
	if s.long.size+len(p) > s.limits.MaxLineBytes {
		s.long.skip(p)
		return
	}
	s.long.write(p)
}

// endLong judges a line that streamed by.
func (s *Scanner) endLong() {
	s.inLong = false
	if !s.counted(s.long.blank, s.long.size) {
		return
	}
	at, notUTF8, err := s.long.fault()
	switch {
	case notUTF8:
		s.notUTF8(at)
	case err != nil:
		s.notJSON(at, err)
	default:
		s.judge(&s.long.request)
	}
}

// counted counts a line and reports whether it is to be judged.
func (s *Scanner) counted(blank bool, size int) bool {
	if blank {
		return false
	}
	s.summary.Lines++
	// the file is refused as it is; the rest is only counted
	if s.summary.Lines > s.limits.MaxLines {
		return false
	}
	if size > s.limits.MaxLineBytes {
		s.lineFault(CodeLineTooLong, noField,
			"The line has %d bytes, the limit is %d; send what it holds in several lines.",
			size, s.limits.MaxLineBytes)
		return false
	}
	return true
}

func (s *Scanner) notUTF8(at int) {
	s.lineFault(CodeInvalidJSON, noField,
		"This line is not parseable as valid JSON. Byte %d is not UTF-8; save the file as UTF-8.",
		at+1)
}

func (s *Scanner) notJSON(at int, err error) {
	s.lineFault(CodeInvalidJSON, noField, "This line is not parseable as valid JSON. Byte %d: %v.",
		at+1, err)
}

// judge checks the fields of a line that is JSON, and enters it into the index if all are right.
func (s *Scanner) judge(r *request) {
	if r.first != '{' {
		s.lineFault(CodeInvalidRequest, noField,
			"This line is not a JSON object; write {\"custom_id\", \"method\", \"url\", \"body\"} on each line.")
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
		Row:         s.physical,
		Offset:      s.offset + int64(r.object.start),
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
		Checksums: Checksums{Object: r.sum(), ID: crc32.Checksum(r.beginning(fieldCustomID),
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
	if first, added := s.ids.add(id, s.physical); !added {
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

// checkURL returns the line's endpoint, nil if it has none.
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
		"The url %s is not one that batches serve; set it to the batch's endpoint, such as /v1/chat/completions.", shown(url))
	return nil
}

// checkBody reports whether the body names a model.
func (s *Scanner) checkBody(r *request, endpoint *Endpoint) (hasModel bool) {
	if !r.values[fieldBody].present() {
		s.lineFault(CodeMissing, fieldBody,
			"Missing required parameter: 'body'; set it to the request's JSON object.")
		return false
	}
	if c := r.beginning(fieldBody)[0]; c != '{' {
		s.lineFault(CodeInvalidType, fieldBody,
			"The body is %s; it must be the request's JSON object.", kind(c))
		return false
	}
	if stream := r.beginning(fieldStream); len(stream) > 0 {
		switch c := stream[0]; c {
		case 't':
			s.lineFault(CodeStream, fieldStream,
				"A batch has nobody to stream to; leave out stream or set it to false.")
		case 'f', 'n':
		default:
			s.lineFault(CodeInvalidType, fieldStream,
				"body.stream is %s; leave it out or set it to false.", kind(c))
		}
	}
	if !r.values[fieldModel].present() && endpoint != nil && endpoint.ModelOptional {
		return false
	}
	_, ok := s.stringOf(r, fieldModel, "set it to the name of a model")
	return ok
}

// stringOf returns the literal of a field that must be a string and not empty, or records the fault
// and its remedy.
func (s *Scanner) stringOf(r *request, f field, mend string) (literal []byte, ok bool) {
	value, size := r.beginning(f), r.values[f].len()
	switch {
	case len(value) == 0:
		s.lineFault(CodeMissing, f, "Missing required parameter: '%s'; %s.", f, mend)
	case value[0] != '"':
		s.lineFault(CodeInvalidType, f, "%s is %s, not a string; %s.", f, kind(value[0]), mend)
	case size == len(`""`):
		s.lineFault(CodeInvalidValue, f, "%s is empty; %s.", f, mend)
	case size > textLimit(f)+len(`""`):
		s.lineFault(CodeInvalidValue, f, "%s has %d bytes, the limit is %d; shorten it.", f,
			size-len(`""`), textLimit(f))
	default:
		return value, true
	}
	return nil, false
}

// model returns the number of the line's model, a new one if need be.
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
		s.summary.URLs = append(s.summary.URLs, URLSummary{URL: url, FirstLine: int(s.physical)})
		s.urls[url] = number
	}
	return number
}

// text returns what a string literal says; a decoded one lives in the scanner's scratch space until
// the next call.
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
				Line: int(s.physical)})
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
