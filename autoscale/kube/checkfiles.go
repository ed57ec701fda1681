package kube

import (
	"fmt"

	"k8s.io/client-go/rest"
)

// CheckFiles reads the kubeconfig, and the files that it names. It sends nothing.
func (c Config) CheckFiles() error {
	if c.Kubeconfig == "" {
		return nil
	}
	config, _, err := restConfig(c)
	if err != nil {
		return err
	}
	if _, err = rest.HTTPClientFor(config); err != nil {
		return fmt.Errorf("kubernetes.kubeconfig: read %s: %w", c.Kubeconfig, err)
	}
	return nil
}
