// Package buckets decides which objects of which buckets users may name, as inputs of batches and
// for their results. The operator lists the buckets; users give neither addresses nor credentials.
//
// [Buckets.Find] answers what a URL s3://BUCKET/NAME stands for at present. It is asked again at
// each use, since the list may change while a batch runs. Package store/places opens the buckets.
package buckets
