// Package storetest holds the conformance suites of package store, one for each interface of the
// contract. A backend of all records runs them together:
//
//	func TestMetadata(t *testing.T) {
//		storetest.TestMetadata(t, func(t *testing.T, now func() time.Time) storetest.Store { … })
//	}
//
// A backend of a part runs the suite of that part, with the other fields of the [Store] from
// another backend. What is special to a backend, such as its files or a lost connection to its
// server, is tested beside the backend.
package storetest
