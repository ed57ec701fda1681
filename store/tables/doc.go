// Package tables holds what backends that keep records in SQL tables have in common, and what does
// not depend on their dialect: objects as columns and documents, the tags and pages of listings,
// and progress.
//
// A row has the columns that queries compare; the rest of an object is one JSON document. Times are
// microseconds since 1970.
package tables
