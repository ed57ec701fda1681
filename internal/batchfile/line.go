package batchfile

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Line is the index record of one request.
type Line struct {
	Number uint32 // of the request, from 0, blank rows not counted
	Row    uint32 // of the file, from 1, blank rows counted; for messages

	Offset int64  // position of the JSON object in the file
	Length uint32 // length of the JSON object, without the newline

	// Positions relative to Offset, in bytes.
	BodyOffset, BodyLength uint32 // the value of "body"
	IDOffset, IDLength     uint32 // the string literal of "custom_id", quotes included

	Model uint16 // position in Index.Models
	URL   uint16 // position in Index.URLs

	MaxTokens   uint32 // the body's limit on output tokens; 0: none
	PromptBytes uint32 // size of the fields that the engine reads, without inline base64 data
	// PrefixHash is a hash of the first KiB of those fields; 0: the endpoint has no use for it.
	PrefixHash uint64

	Checksums   Checksums
	NoChecksums bool // the index is of a release without checksums of lines
}

// Checksums holds CRC-32C of the bytes of a line, so that a damaged line is not sent.
type Checksums struct {
	Object uint32 // of the JSON object
	ID     uint32 // of the literal of the custom_id
}

// ErrDamaged is wrapped by errors about a batch file or line index whose bytes have changed since
// they were written.
var ErrDamaged = errors.New("damaged on its medium")

// Check returns ErrDamaged if object differs from the uploaded line.
func (l Line) Check(object []byte) error {
	return l.compare(crc32.Checksum(object, castagnoli))
}

// CheckFile is Check for a line that is too long for memory. It reads the line from its batch file.
func (l Line) CheckFile(file io.ReaderAt) error {
	sum := crc32.New(castagnoli)
	n, err := io.Copy(sum, io.NewSectionReader(file, l.Offset, int64(l.Length)))
	if err != nil {
		return fmt.Errorf("read line %d: %w", l.Row, err)
	}
	if n < int64(l.Length) {
		return fmt.Errorf("line %d of the input file is cut: %w", l.Row, ErrDamaged)
	}
	return l.compare(sum.Sum32())
}

func (l Line) compare(sum uint32) error {
	if l.NoChecksums || sum == l.Checksums.Object {
		return nil
	}
	return fmt.Errorf("line %d of the input file: %w", l.Row, ErrDamaged)
}

// VerifiedID returns the literal of a custom_id, or one that names the row if the literal is
// damaged or nil.
func (l Line) VerifiedID(literal []byte) []byte {
	if literal != nil && (l.NoChecksums || crc32.Checksum(literal, castagnoli) == l.Checksums.ID) {
		return literal
	}
	return appendQuoted(nil, fmt.Sprintf("damaged custom_id of line %d", l.Row))
}

// Body returns the request's body, a part of object, which is the Length bytes at Offset in the
// file.
func (l Line) Body(object []byte) []byte {
	return object[l.BodyOffset : l.BodyOffset+l.BodyLength]
}

// CustomID returns the string literal of the custom_id, quotes included, a part of object.
func (l Line) CustomID(object []byte) []byte {
	return object[l.IDOffset : l.IDOffset+l.IDLength]
}
