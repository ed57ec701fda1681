// Package cluster is the store backend for several machines: records in PostgreSQL, and files and
// results in a bucket, or in a directory that all processes share. It registers itself under the
// name "cluster".
package cluster
