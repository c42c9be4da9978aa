package openai

import (
	"net/http"
	"net/netip"
	"testing"
	"time"
)

func TestWrongKeysAreCountedByAddress(t *testing.T) {
	var k wrongKeys
	now := time.Now()
	of := func(address string) netip.Prefix { return sender(&http.Request{RemoteAddr: address}) }
	for i, want := range []time.Duration{0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 50, 50} {
		// of one subscriber, over either form of an address
		address := []string{"192.0.2.1:5", "[::ffff:192.0.2.1]:6"}[i%2]
		if n, wait := k.count(of(address), now); n != i+1 || wait != want*100*time.Millisecond {
			t.Errorf("try %d is number %d and waits %v", i, n, wait)
		}
	}
	for _, address := range []string{"192.0.2.2:5", "[2001:db8::1]:5", "@", ""} {
		if n, _ := k.count(of(address), now); n != 1 && address != "" {
			t.Errorf("%q has %d tries", address, n)
		}
	}
	if n, _ := k.count(of("[2001:db8::2]:9"), now); n != 2 {
		t.Errorf("a subscriber's second address begins with try %d", n)
	}
	if n, wait := k.count(of("192.0.2.1:7"), now.Add(forgetAfter)); n != 1 || wait != 0 {
		t.Errorf("after a rest: try %d waits %v", n, wait)
	}
	for i := range 3 * maxSenders {
		k.count(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}),
			32), now)
		if len(k.from) > maxSenders {
			t.Fatalf("%d addresses are remembered", len(k.from))
		}
	}
}
