// Package console shows an operator what the daemon does: as JSON below /admin, and as a page at
// /console that draws this JSON.
//
// The page is embedded and asks no other server for anything. Nothing here changes the daemon, and
// nothing shows prompts, answers, keys or the metadata of batches. docs/console.md describes the
// JSON.
package console
