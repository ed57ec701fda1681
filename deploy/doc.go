// Package deploy holds what an operator installs beside Tidefill: alert rules for Prometheus and a
// dashboard for Grafana. It has no code; its tests check them against the metrics of the daemon.
package deploy
