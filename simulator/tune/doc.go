// Package tune searches values of configuration keys by simulation. A Tuning runs scenarios and
// seeds with many values, and confirms the best on seeds that the search has not used.
package tune
