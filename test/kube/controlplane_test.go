package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/replicaset"

	"github.com/tidefill/tidefill/internal/testservers"
)

// controlPlane is etcd, an API server, and the controllers that make pods and EndpointSlices.
type controlPlane struct {
	dir       string
	ca        *authority
	etcdPort  int
	port      int // of the API server
	etcd, api *exec.Cmd
	admin     kubernetes.Interface
	config    *rest.Config // of the administrator
	cancel    context.CancelFunc
	running   sync.WaitGroup // the controllers
}

// startLimit is how long a process may take until it answers.
const startLimit = 2 * time.Minute

func startControlPlane(dir string) (*controlPlane, error) {
	p := &controlPlane{dir: dir}
	err := p.start()
	if err != nil {
		p.stop()
	}
	return p, err
}

func (p *controlPlane) start() (err error) {
	if p.ca, err = newAuthority(); err != nil {
		return err
	}
	for name, user := range map[string]string{"server": "kube-apiserver", "proxy": "front-proxy",
		"accounts": "service-accounts"} {
		if err := p.ca.write(p.dir, name, user); err != nil {
			return err
		}
	}
	if err := os.WriteFile(p.file("ca.crt"), p.ca.pem, 0o600); err != nil {
		return err
	}
	if err := p.startEtcd(); err != nil {
		return err
	}
	if p.port, err = freePort(); err != nil {
		return err
	}
	if p.config, err = p.configFor(p.address(), "admin", "system:masters"); err != nil {
		return err
	}
	p.config.QPS = -1
	if p.admin, err = kubernetes.NewForConfig(p.config); err != nil {
		return err
	}
	if err := p.startAPIServer(); err != nil {
		return err
	}
	return p.startControllers()
}

func (p *controlPlane) file(name string) string { return filepath.Join(p.dir, name) }

func (p *controlPlane) address() string { return "127.0.0.1:" + strconv.Itoa(p.port) }

func (p *controlPlane) startEtcd() (err error) {
	program, err := testservers.Find("etcd")
	if err != nil {
		return err
	}
	if p.etcdPort, err = freePort(); err != nil {
		return err
	}
	peer, err := freePort()
	if err != nil {
		return err
	}
	clients := fmt.Sprintf("http://127.0.0.1:%d", p.etcdPort)
	peers := fmt.Sprintf("http://127.0.0.1:%d", peer)
	p.etcd, err = p.command("etcd", program, "--data-dir", p.file("etcd"),
		"--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
		"--initial-cluster", "default="+peers)
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	return p.await("etcd", clients+"/health", http.DefaultClient)
}

// startAPIServer starts the API server on its port and waits until it is ready.
func (p *controlPlane) startAPIServer() (err error) {
	p.api, err = p.command("apiserver", os.Args[0],
		"--etcd-servers", fmt.Sprintf("http://127.0.0.1:%d", p.etcdPort),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		"--secure-port", strconv.Itoa(p.port),
		"--endpoint-reconciler-type=none", // others insist on an address that is no loopback
		"--service-cluster-ip-range=10.0.0.0/24",
		"--cert-dir", p.file("certificates"),
		"--tls-cert-file", p.file("server.crt"), "--tls-private-key-file", p.file("server.key"),
		"--client-ca-file", p.file("ca.crt"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file", p.file("accounts.key"),
		"--service-account-signing-key-file", p.file("accounts.key"),
		"--disable-admission-plugins=ServiceAccount", // nobody makes the accounts
		"--requestheader-client-ca-file", p.file("ca.crt"),
		"--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file", p.file("proxy.crt"),
		"--proxy-client-key-file", p.file("proxy.key"),
		"--shutdown-delay-duration=0")
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(p.config)
	if err != nil {
		return err
	}
	return p.await("apiserver", "https://"+p.address()+"/readyz", client)
}

// killAPIServer stops the API server without notice.
func (p *controlPlane) killAPIServer() error {
	err := p.api.Process.Kill()
	_ = p.api.Wait() // it was killed
	return err
}

// startControllers runs the controllers of Deployments, ReplicaSets and EndpointSlices.
func (p *controlPlane) startControllers() error {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	p.cancel = cancel
	factory := informers.NewSharedInformerFactory(p.admin, 0)
	apps, core := factory.Apps().V1(), factory.Core().V1()
	deployments, err := deployment.NewDeploymentController(ctx, apps.Deployments(),
		apps.ReplicaSets(), core.Pods(), p.admin)
	if err != nil {
		return err
	}
	replicaSets := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(),
		p.admin, replicaset.BurstReplicas)
	slices := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(),
		factory.Discovery().V1().EndpointSlices(), 100, p.admin, 100*time.Millisecond)
	factory.StartWithContext(ctx)
	p.running.Go(func() { deployments.Run(ctx, 2) })
	p.running.Go(func() { replicaSets.Run(ctx, 2) })
	p.running.Go(func() { slices.Run(ctx, 2) })
	return nil
}

func (p *controlPlane) stop() {
	if p.cancel != nil {
		p.cancel()
		p.running.Wait()
	}
	for _, c := range []*exec.Cmd{p.api, p.etcd} {
		if c != nil && c.ProcessState == nil {
			_ = c.Process.Kill()
			_ = c.Wait() // it was killed
		}
	}
}

// command starts a process that ends with the tests and logs to NAME.log.
func (p *controlPlane) command(name, program string, args ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(p.file(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c := exec.Command(program, args...)
	c.Env = append(os.Environ(), runsAPIServer+"=1", "ETCD_UNSUPPORTED_ARCH=")
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c, c.Start()
}

// await waits until a URL answers 200.
func (p *controlPlane) await(name, url string, client *http.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(answer.Status)
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(p.file(name + ".log"))
			return fmt.Errorf("%s is not ready: %w; its log ends with:\n%s", name, err,
				log[max(0, len(log)-4000):])
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// configFor returns the configuration of a client that is a user.
func (p *controlPlane) configFor(address, user string, groups ...string) (*rest.Config, error) {
	certificate, key, err := p.ca.issue(user, groups...)
	return &rest.Config{Host: "https://" + address, TLSClientConfig: rest.TLSClientConfig{
		CAData: p.ca.pem, CertData: certificate, KeyData: key}}, err
}

// kubeconfig writes a kubeconfig for a user and a namespace.
func (p *controlPlane) kubeconfig(
	file, address, user, namespace string, groups ...string,
) error {
	certificate, key, err := p.ca.issue(user, groups...)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: "https://" + address,
		CertificateAuthorityData: p.ca.pem}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate,
		ClientKeyData: key}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: user,
		Namespace: namespace}
	config.CurrentContext = "test"
	return clientcmd.WriteToFile(*config, file)
}

// freePort returns a port that nobody listens at.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
