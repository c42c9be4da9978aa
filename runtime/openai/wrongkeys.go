// Wrong keys, by the address that sends them. After some of them each one's answer comes later, and
// all are logged with the address.
//
// What must stay true: a right key is never slowed, whoever else is behind its address; what is
// remembered of addresses is bounded.

package openai

import (
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	freeTries   = 5 // wrong keys of an address whose answers come at once
	longestWait = 5 * time.Second
	rememberFor = 10 * time.Minute // since the last wrong key of an address
	mostSenders = 10_000
)

type wrongKeys struct {
	mu   sync.Mutex
	from map[netip.Prefix]tries
}

type tries struct {
	n    int
	last time.Time
}

// count notes a wrong key, and says which of its address it is and how long the answer waits.
func (k *wrongKeys) count(from netip.Prefix, now time.Time) (n int, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.from == nil || len(k.from) >= mostSenders {
		fresh := map[netip.Prefix]tries{}
		for address, t := range k.from {
			if now.Sub(t.last) < rememberFor && len(fresh) < mostSenders/2 {
				fresh[address] = t
			}
		}
		k.from = fresh
	}
	t := k.from[from]
	if now.Sub(t.last) >= rememberFor {
		t.n = 0
	}
	t.n, t.last = t.n+1, now
	k.from[from] = t
	if t.n > freeTries {
		wait = min(100*time.Millisecond<<min(t.n-freeTries-1, 10), longestWait)
	}
	return t.n, wait
}

// sender is whose tries are counted together: an IPv4 address, or the network of 64 bits that a
// subscriber of IPv6 has. A Unix socket has none.
func sender(r *http.Request) netip.Prefix {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	address := at.Addr().Unmap().WithZone("")
	p, _ := address.Prefix(min(address.BitLen(), 64))
	return p
}

// refuseKey logs a wrong key and has the answer wait.
func (p *port) refuseKey(r *http.Request) {
	n, wait := p.wrong.count(sender(r), time.Now())
	p.Log.Warn("wrong API key", "from", r.RemoteAddr, "tries", n)
	select {
	case <-time.After(wait):
	case <-r.Context().Done():
	}
}
