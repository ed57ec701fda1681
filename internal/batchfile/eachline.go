package batchfile

import "io"

// eachLine calls fn for the lines of an index in order, until it returns an error or done.
func (x *Index) eachLine(fn func(line *Line) (done bool, err error)) error {
	window := make([]Line, 1024)
	for first := 0; ; {
		n, err := x.Read(first, window)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range window[:n] {
			if done, err := fn(&window[i]); done || err != nil {
				return err
			}
		}
		first += n
	}
}
