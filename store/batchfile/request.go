package batchfile

// request is one line taken apart: where each field that we read lies in it.
type request struct {
	object   span // the JSON value of the line, without the white space around it
	values   [fieldCount]span
	repeated [fieldCount]bool
}

// parse takes a line apart. On an error it returns the position of the wrong byte.
// A line that is valid JSON but no object leaves every field absent.
func (r *request) parse(line []byte) (int, error) {
	*r = request{}
	i := skipSpace(line, 0)
	r.object.start = i
	var err error
	if i < len(line) && line[i] == '{' {
		i, err = r.parseLine(line, i)
	} else {
		i, err = skipValue(line, i, maxDepth)
	}
	if err != nil {
		return i, err
	}
	r.object.end = i
	if i = skipSpace(line, i); i < len(line) {
		return i, errTrailing
	}
	return i, nil
}

func (r *request) parseLine(line []byte, i int) (int, error) {
	m := membersAt(line, i)
	for {
		key, more, err := m.next()
		if err != nil || !more {
			return m.at, err
		}
		start, f := m.at, lineField(key.of(line))
		if f == fieldBody && !r.values[fieldBody].present() && start < len(line) && line[start] == '{' {
			m.at, err = r.parseBody(line, start)
		} else {
			m.at, err = skipValue(line, start, maxDepth-1)
		}
		if err != nil {
			return m.at, err
		}
		r.set(f, span{start, m.at})
	}
}

func (r *request) parseBody(line []byte, i int) (int, error) {
	m := membersAt(line, i)
	for {
		key, more, err := m.next()
		if err != nil || !more {
			return m.at, err
		}
		start, f := m.at, bodyField(key.of(line))
		if m.at, err = skipValue(line, start, maxDepth-2); err != nil {
			return m.at, err
		}
		r.set(f, span{start, m.at})
	}
}

func (r *request) set(f field, value span) {
	if f == noField {
		return
	}
	if r.values[f].present() {
		r.repeated[f] = true
		return
	}
	r.values[f] = value
}
