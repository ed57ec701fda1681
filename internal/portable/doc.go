// Package portable computes and draws what packages math and math/rand do not guarantee to the last
// bit, so that a simulation with one seed gives the same bytes on every processor of an
// architecture and in every version of Go.
//
// math.Exp and math.Log are written in assembly for some processors, which uses fused instructions
// where there are such. Exp and Log here follow the FreeBSD algorithms that package math cites
// (e_exp.c and e_log.c, Sun Microsystems 1993) and are within one unit in the last place. Between
// architectures results may differ in the last bit, since a compiler may fuse x*y+z.
package portable
