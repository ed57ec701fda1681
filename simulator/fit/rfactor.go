package fit

import "math"

// rFactor is the R of a QR factorization, to which rows are added one by one by Givens rotations:
// as stable as Householder's, in the memory of R alone. Its last column is the right-hand side, so
// the normal equations, whose condition number is the square, are never formed.
type rFactor struct {
	r       [][]float64
	scratch []float64
}

func newRFactor(width int) *rFactor {
	t := &rFactor{r: make([][]float64, width), scratch: make([]float64, width)}
	for i := range t.r {
		t.r[i] = make([]float64, width)
	}
	return t
}

// add adds a weighted row.
func (t *rFactor) add(row []float64, weight float64) {
	if weight == 0 {
		return
	}
	x := t.scratch
	for j, v := range row {
		x[j] = weight * v
	}
	for i, r := range t.r {
		if math.Abs(x[i]) < 1e-150 { // its square is 0
			continue
		}
		length := math.Sqrt(r[i]*r[i] + x[i]*x[i])
		c, s := r[i]/length, x[i]/length
		r[i], x[i] = length, 0
		for j := i + 1; j < len(r); j++ {
			r[j], x[j] = c*r[j]+s*x[j], c*x[j]-s*r[j]
		}
	}
}

// pick returns the factor of some of the columns, in the given order.
func (t *rFactor) pick(columns ...int) *rFactor {
	picked := newRFactor(len(columns))
	row := make([]float64, len(columns))
	for _, r := range t.r {
		for i, j := range columns {
			row[i] = r[j]
		}
		picked.add(row, 1)
	}
	return picked
}

// norm returns the length of a column.
func (t *rFactor) norm(column int) float64 {
	sum := 0.0
	for _, r := range t.r {
		sum = math.Hypot(sum, r[column])
	}
	return sum
}

// unexplained returns the length of the part of a column that the others don't explain.
func (t *rFactor) unexplained(column int) float64 {
	order := make([]int, 0, len(t.r)-1)
	for j := range len(t.r) - 1 {
		if j != column {
			order = append(order, j)
		}
	}
	last := len(order)
	return math.Abs(t.pick(append(order, column)...).r[last][last])
}

// inflation returns the variance inflation of a column: its variance around the constant, as a
// multiple of the part that the others do not explain.
func (t *rFactor) inflation(column int) float64 {
	if column == 0 {
		return 1
	}
	around, left := math.Abs(t.pick(0, column).r[1][1]), t.unexplained(column)
	if left <= dependenceTolerance*t.norm(column) {
		return math.Inf(1)
	}
	return (around / left) * (around / left)
}

// mostCollinear returns the column whose removal reduces the inflation of another most.
func (t *rFactor) mostCollinear(column int) int {
	best, least := 0, math.Inf(1)
	for drop := 1; drop < len(t.r)-1; drop++ {
		if drop == column {
			continue
		}
		columns, at := []int{}, 0
		for j := range t.r {
			if j == column {
				at = len(columns)
			}
			if j != drop {
				columns = append(columns, j)
			}
		}
		if v := t.pick(columns...).inflation(at); v < least {
			best, least = drop, v
		}
	}
	return best
}

// dependenceTolerance is the share of a column's length below which the part that the others don't
// explain is rounding.
const dependenceTolerance = 1e-10

// solve returns the least squares solution for the chosen columns; false if they are dependent.
func (t *rFactor) solve(chosen []int) ([]float64, bool) {
	rhs := len(t.r) - 1
	p := t.pick(append(append([]int{}, chosen...), rhs)...)
	x := make([]float64, len(chosen))
	for i := len(chosen) - 1; i >= 0; i-- {
		if math.Abs(p.r[i][i]) <= dependenceTolerance*t.norm(chosen[i]) {
			return nil, false
		}
		sum := p.r[i][len(chosen)]
		for j := i + 1; j < len(chosen); j++ {
			sum -= p.r[i][j] * x[j]
		}
		x[i] = sum / p.r[i][i]
	}
	return x, true
}

// nonNegative returns the least squares solution without negative coefficients, by the active set
// method of Lawson and Hanson (Solving Least Squares Problems, 1974, chapter 23).
func (t *rFactor) nonNegative() []float64 {
	n := len(t.r) - 1
	x := make([]float64, n)
	free, useless := make([]bool, n), make([]bool, n)
	chosen := func() []int {
		var columns []int
		for j := range n {
			if free[j] {
				columns = append(columns, j)
			}
		}
		return columns
	}
	for range 10 * (n + 1) { // far beyond what it takes; a bound against cycles by rounding
		enter := t.steepest(x, free, useless)
		if enter < 0 {
			break
		}
		free[enter] = true
		for {
			columns := chosen()
			z, independent := t.solve(columns)
			if !independent {
				free[enter], useless[enter] = false, true
				break
			}
			step, blocking := 1.0, -1
			for i, j := range columns {
				if z[i] > 0 {
					continue
				}
				if s := x[j] / max(x[j]-z[i], math.SmallestNonzeroFloat64); s < step {
					step, blocking = s, j
				}
			}
			for i, j := range columns {
				x[j] += step * (z[i] - x[j])
			}
			if blocking < 0 {
				clear(useless)
				break
			}
			x[blocking], free[blocking] = 0, false
			useless[enter] = useless[enter] || blocking == enter // it was freed only by rounding
		}
	}
	for j := range x {
		x[j] = max(0, x[j])
	}
	return x
}

// steepest returns the column at its bound whose increase reduces the error most; -1: there is
// none.
func (t *rFactor) steepest(x []float64, free, useless []bool) int {
	n := len(x)
	residual := make([]float64, n) // of the rows above the last, which no coefficient reaches
	for i := range n {
		residual[i] = t.r[i][n]
		for j := range n {
			residual[i] -= t.r[i][j] * x[j]
		}
	}
	best, most := -1, 1e-12*t.norm(n)
	for j := range n {
		if free[j] || useless[j] {
			continue
		}
		slope := 0.0
		for i := range n {
			slope += t.r[i][j] * residual[i]
		}
		if norm := t.norm(j); norm > 0 && slope/norm > most {
			best, most = j, slope/norm
		}
	}
	return best
}
