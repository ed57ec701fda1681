package config

import "reflect"

// Running returns the configuration of a daemon that runs with c and has been given next: that of
// next, except for the keys that need a restart, which are as in c.
func (c Config) Running(next Config) Config {
	keep(reflect.ValueOf(&next).Elem(), reflect.ValueOf(c), "")
	return next
}

// keep gives the keys of a section that need a restart the values that they have in running.
func keep(section, running reflect.Value, path string) {
	for f := range fields(section) {
		key := join(path, f.key)
		applied, mixed := atRunTime(key)
		switch {
		case mixed:
			f.change(section, func(v reflect.Value) { keep(v, f.of(running), key) })
		case !applied:
			f.change(section, func(v reflect.Value) { v.Set(f.of(running)) })
		}
	}
}
