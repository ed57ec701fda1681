package portable

import "math"

const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
)

// Exp returns e to the power of x.
func Exp(x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case x > 7.09782712893383973096e+02:
		return math.Inf(1)
	case x < -7.45133219101941108420e+02:
		return 0
	}
	k := math.Floor(x*math.Log2E + 0.5)
	hi := x - k*ln2Hi
	lo := k * ln2Lo
	r := hi - lo
	t := r * r
	p := t*4.13813679705723846039e-08 - 1.65339022054652515390e-06
	p = t*p + 6.61375632143793436117e-05
	p = t*p - 2.77777777770155933842e-03
	p = t*p + 1.66666666666666657415e-01
	c := r - t*p
	y := 1 - ((lo - r*c/(2-c)) - hi)
	if k < -1000 || k > 1000 {
		return math.Ldexp(y, int(k))
	}
	// like Ldexp, without its handling of extreme exponents
	return y * math.Float64frombits(uint64(1023+int64(k))<<52)
}

// Log returns the natural logarithm of x.
func Log(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	fraction, exponent := math.Frexp(x)
	if fraction < math.Sqrt2/2 {
		fraction *= 2
		exponent--
	}
	f := fraction - 1
	k := float64(exponent)
	s := f / (2 + f)
	s2 := s * s
	r := s2*1.479819860511658591e-01 + 1.531383769920937332e-01
	r = s2*r + 1.818357216161805012e-01
	r = s2*r + 2.222219843214978396e-01
	r = s2*r + 2.857142874366239149e-01
	r = s2*r + 3.999999999940941908e-01
	r = s2*r + 6.666666666666735130e-01
	r = s2 * r
	half := f * f / 2
	return k*ln2Hi - ((half - (s*(half+r) + k*ln2Lo)) - f)
}
