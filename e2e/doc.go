// Package e2e holds Tidefill to its promises from outside: the real binary as a process, official
// SDKs and raw sockets as clients, stub upstreams in the test, kills, full disks and damaged files
// in between.
//
// It is a module of its own, so that the SDKs don't weigh on the product's. The binary is built
// from the directory above, once per run; tests that don't measure time or kill run one with the
// race detector.
//
// # The fault suite
//
// Tests that begin with TestChaos are the fault suite. `make test` runs a bounded form of it, some
// minutes in all, which judges behaviour: answers, errors, whether everything goes on by itself.
// `make chaos` runs it in full, judges the peak of memory by the kernel's figure (VmHWM, 128 MiB)
// and prints the table "reliability". A scenario that draws at random logs its seed; -seed repeats
// it.
//
// What each scenario does, and what must hold:
//
//   - Kills (chaos_kill_test.go): users upload, in parts too, create, pause, resume, cancel, let expire, retry and delete, one of them with
//     50,000 lines, while the daemon is killed, mostly within an operation. All that was acknowledged is there once, every batch ends and is
//     verified, and only lines under way or within one group commit are sent again.
//   - Several daemons (chaos_nodes_test.go): two and three on one store keep every limit of batches and runners as one does; the one that sends
//     is killed or frozen, another goes on within the lease, and no line is lost or doubled.
//   - Inputs (chaos_inputs_test.go): a daemon is frozen while another accepts a batch of a file that is then deleted; neither the end of the
//     first batch nor a sweep takes the bytes from the second.
//   - Freezes (chaos_frozen_test.go): a daemon alone stands still beyond its lease while users work; one of two stands still while it writes
//     result files, which a user deletes meanwhile and which stay deleted.
//   - Full disk (chaos_disk_test.go): the daemon is ready, pauses, cancels and deletes, also after a restart, and deleting one file through the
//     API is enough for everything to go on.
//   - Locked database (chaos_lock_test.go): another process holds the write lock; reads are answered, writes get 503 with Retry-After in time,
//     and every batch ends afterwards.
//   - Data directory gone (chaos_directory_test.go): moved away or unmounted, it makes the daemon unready with the reason; nothing is taken, and
//     all goes on when it is back.
//   - Damaged journals (chaos_journal_test.go): cut, emptied, flipped, blanked and padded journals cost repeats of what they held, and no line.
//   - Hostile upstreams (chaos_upstream_test.go): endless bodies, headers, hints, chunk extensions and trailers, large answers, a byte now and
//     then, garbage, cut connections, wrong lengths, unsolicited answers, gzip bombs and invented models harm the lines of that upstream alone,
//     within few repeats, all of them counted; a line that is always shed is given up while its neighbours pass, an outage costs nothing.
//   - Hostile clients (chaos_client_test.go): half-open and dripping connections are ended and keep nobody out; a line of 199 MB, a thousand
//     uploads at once, thousands of event streams, large options and readers that don't read stay within the memory; web pages of other
//     origins and names that lead here are refused.
package e2e
