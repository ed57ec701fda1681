package chart

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Objects returns the objects of all files but the notes.
func Objects(files []File) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, f := range files {
		if f.Name == "NOTES.txt" {
			continue
		}
		objects, err := Decode(f.Text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// Decode returns the objects of YAML documents. A key that appears twice is an error.
func Decode(text string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		json, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, document)
		}
		if bytes.Equal(json, []byte("null")) {
			continue // comments
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(json); err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, document)
		}
		all = append(all, u)
	}
}
