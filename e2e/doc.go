// Package e2e tests Tidefill from outside: it runs the real binary as a process, with official SDKs
// and raw sockets as clients and stub runners in the test, and it kills processes, fills disks and
// damages files.
//
// It is a module of its own, so that the product does not depend on the SDKs. The binary is built
// from the directory above, once per run; tests that neither measure time nor kill use a binary
// with the race detector.
//
// # The description of the API
//
// Clients of tests, the SDKs among them, reach a daemon through a Described. It compares each
// exchange with the OpenAPI description that the daemon serves: all answers, and the requests that
// were accepted, since tests send wrong ones on purpose. So an answer's value or status, or a key
// of a request, that is not described fails the test that meets it.
//
// # The fault suite
//
// Tests that begin with TestChaos are the fault suite. `make test` runs a short form of it, some
// minutes in total, which checks behaviour: answers, errors, and recovery. `make chaos` runs the
// full form, also checks the peak of memory as the kernel reports it (VmHWM; 128 MiB, with a bucket
// 350 MiB), and prints the table "reliability". A scenario that draws at random logs its seed;
// -seed repeats it.
//
// The scenarios and their requirements:
//
//   - Kills (chaos_kill_test.go): users upload, also in parts, create, pause, resume, cancel,
//     expire, retry and delete batches, one of them with 50,000 lines, while the daemon is
//     killed, mostly within an operation. Everything acknowledged exists once, every batch ends
//     and is verified, and only lines in flight or within one group commit are sent again.
//   - Several daemons (chaos_nodes_test.go): two and three daemons on one store respect every
//     limit of batches and runners as one does. The daemon that sends is killed or frozen,
//     another one continues within the lease, and no line is lost or doubled.
//   - Inputs (chaos_inputs_test.go): a daemon is frozen while another accepts a batch of a file
//     that is then deleted. Neither the end of the first batch nor a sweep removes the bytes of
//     the second.
//   - Freezes (chaos_frozen_test.go): a single daemon is frozen beyond its lease while users
//     work. One of two is frozen while it writes result files, which a user deletes meanwhile and
//     which remain deleted.
//   - Full disk (chaos_disk_test.go): the daemon is ready, pauses, cancels and deletes, also
//     after a restart, and after the deletion of one file through the API everything continues.
//   - Locked database (chaos_lock_test.go): another process holds the write lock. Reads are
//     answered, writes get 503 with Retry-After in time, and every batch ends afterwards.
//   - Missing data directory (chaos_directory_test.go): it is moved away or unmounted. The daemon
//     is not ready and reports the reason, accepts nothing, and continues when the directory is
//     back.
//   - Damaged journals (chaos_journal_test.go): truncated, emptied, flipped, zeroed and padded
//     journals cause repetitions of the lines in them, and no loss.
//   - Hostile runners (chaos_runner_test.go): endless bodies, headers, hints, chunk extensions
//     and trailers, large answers, single bytes at intervals, garbage, cut connections, wrong
//     lengths, unsolicited answers, gzip bombs and invented models affect only the lines of that
//     runner, with few repetitions, all of them counted. A line that is always shed fails while
//     other lines succeed; an outage costs no attempts.
//   - Hostile clients (chaos_client_test.go): half-open and slow connections are closed and do
//     not keep others out. A line of 199 MB, a thousand concurrent uploads, thousands of event
//     streams, large options and readers that do not read stay within the memory limit. Web pages
//     of other origins and foreign host names are refused.
package e2e
