// Servers by name: every address of dns+http://name:port is a server, as the pods of a headless
// service are.
//
// What must stay true: a lookup that fails changes nothing; a removed address gets no new
// requests, and its running ones may end.

package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/remote/client"
)

// lookupInterval is the time between two lookups of a name. lookup returns its addresses. Tests
// replace both.
var (
	lookupInterval = 3 * time.Second
	lookup         = func(ctx context.Context, name string) ([]netip.Addr, error) {
		// of both families each machine would be two servers
		list, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", name)
		dns, isDNS := errors.AsType[*net.DNSError](err)
		if err != nil && (!isDNS || dns.IsNotFound) { // no answer is no reason to use others
			list, err = net.DefaultResolver.LookupNetIP(ctx, "ip6", name)
		}
		return list, err
	}
)

// addURL adds a server of the options, or a name of several.
func (p *Pool) addURL(text string) error {
	address, ok := strings.CutPrefix(text, "dns+")
	if !ok {
		return p.add(text, nil)
	}
	name, err := url.Parse(address)
	if err != nil || name.Scheme != "http" || name.Hostname() == "" {
		return fmt.Errorf("%q is not a name of servers. Use dns+http://name:port", text)
	}
	name.Path = strings.TrimSuffix(strings.TrimRight(name.Path, "/"), "/v1") // as Client.Root
	p.names = append(p.names, name)
	return nil
}

// add begins to check a server.
func (p *Pool) add(address string, name *url.URL) error {
	c, err := client.New(address, p.o.Key)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(p.ctx)
	s := &server{client: c, name: name, stop: stop}
	p.mu.Lock()
	p.list = append(p.list, s)
	p.mu.Unlock()
	p.watchers.Go(func() { p.watch(ctx, s) })
	return nil
}

// follow looks a name up at intervals, and adds and removes servers.
func (p *Pool) follow(ctx context.Context, name *url.URL) {
	clock := time.NewTicker(lookupInterval)
	defer clock.Stop()
	for failed := false; ; {
		addresses, err := lookup(ctx, name.Hostname())
		if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
			err = nil // it has no address
		}
		if err == nil && len(addresses) > 0 {
			p.update(name, addresses)
		} else if !failed && ctx.Err() == nil {
			p.o.Notify(fmt.Sprintf("%s is not looked up: %s", name.Hostname(),
				cmp.Or(err, errors.New("it has no address"))))
		}
		failed = err != nil || len(addresses) == 0
		select {
		case <-clock.C:
		case <-ctx.Done():
			return
		}
	}
}

// update makes the addresses of a name the servers that it has.
func (p *Pool) update(name *url.URL, addresses []netip.Addr) {
	var roots []string
	for _, ip := range addresses {
		u := *name
		u.Host = net.JoinHostPort(ip.Unmap().String(), cmp.Or(name.Port(), "80"))
		roots = append(roots, u.String())
	}
	var removed []*server
	p.mu.Lock()
	p.list = slices.DeleteFunc(p.list, func(s *server) bool {
		if s.name != name {
			return false
		}
		i := slices.Index(roots, s.client.Root())
		if i >= 0 {
			roots = slices.Delete(roots, i, i+1)
			return false
		}
		s.up = false
		p.affinity.remove(s)
		removed = append(removed, s)
		return true
	})
	p.mu.Unlock()
	for _, s := range removed {
		s.stop()
		s.client.Close()
		p.o.Notify(fmt.Sprintf("%s has left %s", s.client.Root(), name.Hostname()))
	}
	for _, address := range roots {
		if err := p.add(address, name); err != nil {
			p.o.Notify(err.Error())
			continue
		}
		p.o.Notify(fmt.Sprintf("%s is an address of %s", address, name.Hostname()))
	}
}
