// Package fit derives the cost model of an engine (package costmodel) from measured steps of it.
//
// The steps from a file to a cost model:
//
//	ReadSteps        a CSV of scheduler steps, checked row by row
//	RecordingReader  the same from a daemon's recording, some seconds at a time
//	Observe          the intervals whose time is known, with what was computed in them
//	Fit              coefficients by non-negative least squares on the relative error,
//	                 robust against outliers; the knee by scan; terms that the data
//	                 can't distinguish are held at the prior's value or at zero
//	CrossValidate    the error of the method on iterations it has not seen
//	Plot             cost model against measurements, as SVG
//
// The package is pure and uses the standard library alone: the same steps, prior and seed give the
// same bytes, whatever the order of the rows.
package fit
