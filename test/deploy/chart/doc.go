// Package chart renders the Helm chart, so that tests see what users install.
package chart
