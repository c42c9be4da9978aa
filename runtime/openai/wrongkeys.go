// Wrong keys, counted by the sending address. After some of them each answer is delayed, and all
// are logged with the address.
//
// What must stay true: a right key is never slowed, even if its address also sends wrong keys; the
// memory for addresses is bounded.

package openai

import (
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	freeAttempts = 5 // wrong keys of an address that are answered without delay
	maxWait      = 5 * time.Second
	forgetAfter  = 10 * time.Minute // since the last wrong key of an address
	maxSenders   = 10_000
)

type wrongKeys struct {
	mu   sync.Mutex
	from map[netip.Prefix]attempts
}

type attempts struct {
	n    int
	last time.Time
}

// count records a wrong key, and returns how many its address sent and the delay of the answer.
func (k *wrongKeys) count(from netip.Prefix, now time.Time) (n int, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.from == nil || len(k.from) >= maxSenders {
		recent := map[netip.Prefix]attempts{}
		for address, t := range k.from {
			if now.Sub(t.last) < forgetAfter && len(recent) < maxSenders/2 {
				recent[address] = t
			}
		}
		k.from = recent
	}
	t := k.from[from]
	if now.Sub(t.last) >= forgetAfter {
		t.n = 0
	}
	t.n, t.last = t.n+1, now
	k.from[from] = t
	if t.n > freeAttempts {
		wait = min(100*time.Millisecond<<min(t.n-freeAttempts-1, 10), maxWait)
	}
	return t.n, wait
}

// sender groups requests by IPv4 address, or by the 64-bit network that an IPv6 subscriber has. A
// Unix socket has none.
func sender(r *http.Request) netip.Prefix {
	addrPort, _ := netip.ParseAddrPort(r.RemoteAddr)
	address := addrPort.Addr().Unmap().WithZone("")
	p, _ := address.Prefix(min(address.BitLen(), 64))
	return p
}

// refuseKey logs a wrong key and delays the answer.
func (p *port) refuseKey(r *http.Request) {
	n, wait := p.wrongKeys.count(sender(r), time.Now())
	p.Log.Warn("wrong API key", "from", r.RemoteAddr, "tries", n)
	select {
	case <-time.After(wait):
	case <-r.Context().Done():
	}
}
