// Package portable computes and draws what packages math and math/rand do not guarantee to the last
// bit, so that a simulation with one seed gives the same bytes on every processor.
//
// Two things differ between processors. First, math.Exp and math.Log are written in assembly for
// some of them. Exp and Log here follow the FreeBSD algorithms that package math cites (e_exp.c and
// e_log.c, Sun Microsystems 1993) and are within one unit in the last place. Second, a Go compiler
// may fuse x*y+z into one instruction with a single rounding. Rounded prevents that. Square roots,
// divisions and single products are exact by IEEE 754 everywhere.
package portable
