// Package fit turns measured steps of an inference engine into the law of
// package engine.
//
// The way from a file to a law:
//
//	ReadSteps   a csv of scheduler steps, checked line by line
//	Recorded    the same from a daemon's recording, some seconds at a time
//	Observe     the iterations in it whose time is known, with what was computed in them
//	Fit         coefficients by non-negative least squares on the relative error,
//	            robust against outliers; the knee by scan; what the data can't tell
//	            apart is found, named and held at the prior's value or at zero
//	Judge       the error of a law on observations
//	CrossValidate  the error of the method on iterations it has not seen
//	Plot        law against points, as SVG
//
// The package is pure and uses the standard library alone: the same steps, prior
// and seed give the same bytes, in whatever order the rows come.
package fit
