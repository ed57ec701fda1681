// Package console shows an operator what the daemon does: as JSON below /admin, and as a page at
// /console that draws this JSON.
//
// At the API's address it has the page of users, which calls the API with the key of its user.
//
// The pages are embedded and ask no other server for anything. What is below /admin shows no
// prompts, answers, keys or metadata of batches. The page of a batch reads and changes it by the
// API, which decides by the key of its user. docs/console.md describes the JSON.
package console
