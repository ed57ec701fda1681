// Package send sends lines to runners, with a pool of goroutines, and reports how each ended.
//
//   - [Senders] takes lines of the loop and gives each to a goroutine.
//   - The transport sends a line in the first of its variants that the runner understands: as a
//     stream or not, with the engine's priority or without.
//   - [Rooms] limits the lines in flight of jobs whose answers go to temporary files.
//
// A good answer goes to the recorder, while the sender still has its memory. All else is in the
// flight, which returns to the loop.
package send
