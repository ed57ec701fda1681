package buckets

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Scheme begins every URL.
const Scheme = "s3://"

// maxName is the limit of S3 on the bytes of a name.
const maxName = 1024

// URL names an object of a bucket, or all objects whose names start with Name, which then ends in a
// slash or is empty.
type URL struct{ Bucket, Name string }

// String returns the URL as users write it.
func (u URL) String() string { return Scheme + u.Bucket + "/" + u.Name }

// Several reports whether the URL names all objects below it.
func (u URL) Several() bool { return u.Name == "" || strings.HasSuffix(u.Name, "/") }

// ParseURL reads a URL s3://BUCKET/NAME. The name is taken as it is: nothing in it is decoded, and
// '?', '#' and '%' are characters like others, as in the tools of S3. Its parts between slashes are
// neither empty nor "." nor "..", which storages that keep objects as files could follow elsewhere.
func ParseURL(text string) (URL, error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	bucket, name, slash := strings.Cut(rest, "/")
	if !ok || !slash || bucket == "" {
		return URL{}, errors.New("write s3://BUCKET/NAME of an object, or s3://BUCKET/NAME/ of " +
			"all objects below")
	}
	if !bucketName.MatchString(bucket) {
		return URL{}, fmt.Errorf("%q can't be the name of a bucket", bucket)
	}
	if name != "" {
		if err := checkName(name); err != nil {
			return URL{}, err
		}
	}
	return URL{bucket, name}, nil
}

// checkName accepts names of objects, and beginnings of them that end in a slash.
func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("the name of the object has %d bytes, the limit is %d", len(name),
			maxName)
	}
	if !utf8.ValidString(name) {
		return errors.New("the name of the object is not UTF-8")
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return errors.New("the name of the object has a control character")
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(name, "/"), "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("the name of the object has the part %q between slashes; rename the "+
				"object", part)
		}
	}
	return nil
}
