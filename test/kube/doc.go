// Package kube tests autoscale/kube and registry/kube against a real control plane: the API server
// of k8s.io/kubernetes with etcd, and the controllers that make pods and EndpointSlices. It is a
// module of its own, because the API server has many dependencies.
//
// The API server is a process of the test binary itself, so that it can be stopped and started. Its
// clients come through proxies that can cut their connections. Nodes do not exist: tests set the
// status of pods as a kubelet would.
//
// The tests of the loop run the daemon, the HPA's controller, and emulated runners in the place of
// pods through a day, sixty times as fast. testdata/loop has the days, as scenarios of the
// simulator, and the daemon's configuration.
package kube
