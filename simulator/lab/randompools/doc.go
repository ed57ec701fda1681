// Package randompools judges a policy on pools that package random draws. It runs the policy on
// each of them, searches for the best safe static setting to compare with, and reports how losses
// and harvests are distributed.
//
// A Study runs its pools in parallel. With a directory it can be interrupted and repeated: pools,
// references and results are kept there, each under a key of all that it depends on, so a second
// policy costs its own runs only.
package randompools
