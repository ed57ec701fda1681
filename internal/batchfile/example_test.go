package batchfile_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// An upload is written to a Scanner and to the disk. Later each line is read from the file by means
// of its index.
func ExampleScanner() {
	const file = `{"custom_id": "one", "method": "POST", "url": "/v1/completions", "body": {"model": "m", "prompt": "Hi", "seed": 7}}
{"custom_id": "two", "method": "GET", "url": "/v1/completions", "body": {"model": "m", "prompt": "Ho"}}
`
	var index bytes.Buffer
	s := batchfile.NewScanner(&index, batchfile.Limits{})
	if _, err := s.Write([]byte(file)); err != nil {
		log.Fatal(err)
	}
	summary, err := s.Finish()
	if err != nil {
		log.Fatal(err)
	}
	for _, fault := range summary.Faults {
		fmt.Println(fault)
	}

	x, err := batchfile.OpenIndex(bytes.NewReader(index.Bytes()), int64(index.Len()))
	if err != nil {
		log.Fatal(err)
	}
	lines := make([]batchfile.Line, x.Len())
	if _, err := x.Read(0, lines); err != nil {
		log.Fatal(err)
	}
	for _, line := range lines {
		object := []byte(file)[line.Offset:][:line.Length]
		fmt.Printf("%s: %s\n", line.CustomID(object), line.Body(object))
	}
	// Output:
	// line 2: invalid_value: The method is "GET"; the only method is "POST".
	// "one": {"model": "m", "prompt": "Hi", "seed": 7}
}
