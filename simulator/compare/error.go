package compare

import "fmt"

// RequestError reports a request that cannot be run as it was given, such as an unknown profile.
type RequestError struct{ Err error }

func (e *RequestError) Error() string { return e.Err.Error() }

func (e *RequestError) Unwrap() error { return e.Err }

// RequestErrorf returns a RequestError.
func RequestErrorf(format string, args ...any) error {
	return &RequestError{fmt.Errorf(format, args...)}
}
