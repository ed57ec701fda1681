// Package registry holds what is in force: the pools of runners, what they are for, and what
// configures them.
//
// A pool is a logical group of runners that serve the same models. Its name never changes. Runners
// that are found at run time join a pool; they never create one.
//
// A [Template] says how a model is deployed, a [Profile] how batches are stored, scheduled and
// limited. A [UseCaseSet] binds model names that users send to pools, with an objective and target
// models. [Catalogs] hold those in force, by what documents say: strictly read, each item judged
// alone, and a faulty one as it was last. They resolve the names that users write. Use cases are
// judged together as well, since a model name is unique in a pool.
//
// A [Snapshot] is immutable: whoever has one sees the same pools until it takes the next. The
// package is pure. Package config makes a snapshot of a valid configuration (Config.Snapshot).
// Package app gives it to the dispatcher and to scaling, at start and after a reload. Runners that
// are found in Kubernetes are no part of it: package app adds them to the upstreams.
package registry
