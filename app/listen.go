package app

import (
	"errors"
	"fmt"
	"net"
)

// listen opens the listeners that the options did not give.
func (a *App) listen() (err error) {
	if a.listener == nil && a.servesAPI() {
		if a.listener, err = net.Listen("tcp", a.cfg.Listen); err != nil {
			return fmt.Errorf("listen for the API: %w; choose another address for listen", err)
		}
	}
	if a.adminListener == nil && a.cfg.AdminListen != "" {
		if a.adminListener, err = net.Listen("tcp", a.cfg.AdminListen); err != nil {
			return fmt.Errorf("listen for administration: %w; choose another admin_listen", err)
		}
	}
	return nil
}

// closeListeners registers the closing of all listeners, whether they are open yet or not. The
// servers close them too.
func (a *App) closeListeners() {
	a.onClose("API listener", func() error { return closeListener(a.listener) })
	a.onClose("admin listener", func() error { return closeListener(a.adminListener) })
	a.onClose("scaler listener", func() error { return closeListener(a.options.ScalerListener) })
}

func closeListener(l net.Listener) error {
	if l == nil {
		return nil
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// URL returns where the API is reached from this machine, such as http://127.0.0.1:8080. Empty: it
// is not served.
func (a *App) URL() string {
	if a.listener == nil {
		return ""
	}
	return a.scheme() + reachable(a.listener.Addr())
}

// AdminURL returns where administration is reached from this machine. Empty: it is not served.
func (a *App) AdminURL() string {
	if a.adminListener == nil {
		return ""
	}
	return a.scheme() + reachable(a.adminListener.Addr())
}

func (a *App) scheme() string {
	if a.certificates != nil {
		return "https://"
	}
	return "http://"
}

// reachable replaces the address of all interfaces by the loopback address.
func reachable(address net.Addr) string {
	tcp, ok := address.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return address.String()
}
