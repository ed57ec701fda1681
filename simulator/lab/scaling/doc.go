// Package scaling compares the policies of package autoscale with the fewest replica-hours that
// meet all deadlines, over days in which traffic and batch work flow as rates. It has tests only.
package scaling
