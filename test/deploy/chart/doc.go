// Package chart renders the Helm chart as helm does, so that tests of this module and of test/kube
// see what users install.
package chart
