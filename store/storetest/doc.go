// Package storetest is the conformance suite of package store. A backend is done when it passes
// unchanged:
//
//	func TestMetadata(t *testing.T) {
//		storetest.TestMetadata(t, func(t *testing.T, now func() time.Time) storetest.Store { … })
//	}
//
// The suites hold what the contracts promise to everybody. What is special to a backend (its files,
// its server going away) is tested beside the backend.
package storetest
