package kube

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// namespaceFile holds the namespace of a pod's service account.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// clients are the clients of one API server.
type clients struct {
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	limited   *rest.Config // with a timeout, for clients that take no context
	namespace string
}

// connect builds the clients. It sends nothing.
func connect(cfg Config) (*clients, error) {
	config, namespace, err := restConfig(cfg)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "tidefill"
	config.WarningHandler = rest.NoWarnings{}
	config.QPS = requestsPerSecond
	config.Burst = 2 * requestsPerSecond
	limited := rest.CopyConfig(config)
	limited.Timeout = RequestTimeout
	c := &clients{limited: limited, namespace: namespace}
	// The typed client knows protobuf, which takes less time and memory than JSON.
	compact := rest.CopyConfig(config)
	compact.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	compact.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: connect to %s: %w", config.Host, err)
	}
	typed, err1 := kubernetes.NewForConfigAndClient(compact, client)
	untyped, err2 := dynamic.NewForConfigAndClient(config, client)
	only, err3 := metadata.NewForConfigAndClient(config, client)
	discoverer, err4 := discovery.NewDiscoveryClientForConfig(limited)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("kubernetes: connect to %s: %w", config.Host, err)
	}
	c.typed, c.dynamic, c.metadata, c.discovery = typed, untyped, only, discoverer
	return c, nil
}

func restConfig(cfg Config) (*rest.Config, string, error) {
	if cfg.Kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, "", fmt.Errorf("this is no pod of a cluster (%w), and "+
				"kubernetes.kubeconfig is empty; set it to a kubeconfig file, or remove "+
				"pools[].kubernetes and registry.kubernetes", err)
		}
		namespace, err := os.ReadFile(namespaceFile)
		if err != nil && cfg.Namespace == "" {
			return nil, "", fmt.Errorf("read the namespace of this pod: %w; set "+
				"kubernetes.namespace", err)
		}
		return config, cmp.Or(cfg.Namespace, strings.TrimSpace(string(namespace))), nil
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: cfg.Kubeconfig},
		&clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("kubernetes.kubeconfig: read %s: %w", cfg.Kubeconfig, err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("kubernetes.kubeconfig: read %s: %w", cfg.Kubeconfig, err)
	}
	return config, cmp.Or(cfg.Namespace, namespace), nil
}
