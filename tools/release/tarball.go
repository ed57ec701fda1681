package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"path"
	"slices"
	"time"
)

// file is a file of an archive. It belongs to root.
type file struct {
	path    string // with slashes
	mode    int64
	content []byte
}

// tarball returns a tar.gz of files below a directory, with the directories above them, sorted by
// name. The same files and time give the same bytes.
func tarball(below string, files []file, at time.Time) ([]byte, error) {
	entries := map[string]*tar.Header{}
	contents := map[string][]byte{}
	for _, f := range files {
		name := below + f.path
		entries[name] = &tar.Header{Typeflag: tar.TypeReg, Mode: f.mode,
			Size: int64(len(f.content))}
		contents[name] = f.content
		for dir := path.Dir(f.path); dir != "."; dir = path.Dir(dir) {
			entries[below+dir+"/"] = &tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}
		}
	}
	entries[below] = &tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		h := entries[name]
		h.Name, h.ModTime, h.Format = name, at, tar.FormatGNU
		h.Uname, h.Gname = "root", "root"
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(contents[name]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return compressed(packed.Bytes())
}

// compressed returns content as a gzip file without a name and a time.
func compressed(content []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return packed.Bytes(), err
}
