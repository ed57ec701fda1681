// Package portable draws and computes what package math and math/rand do not
// promise to the last bit: the same on every processor, so that a simulation told
// with one seed is told with the same bytes everywhere.
//
// Two things differ between processors. Math.Exp and math.Log are written in
// assembly for some of them; Exp and Log here follow the FreeBSD algorithms that
// package math cites (e_exp.c and e_log.c, Sun Microsystems 1993), and are within
// one unit in the last place. And Go may fuse x*y+z into one rounding where the
// processor offers it: so every product that is added to is rounded before, by a
// conversion (an assignment is not enough). Square roots, divisions and single
// products are exact by IEEE 754 everywhere.
package portable
