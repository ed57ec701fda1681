// Package deploy tests what deploy/ ships: the Helm chart, the manifests, the image, the systemd
// unit, and the pages that show how to use them. It is a module of its own because of Helm and the
// schemas of other projects. With -update it generates what is generated from the chart.
package deploy
