package hub_test

// Pulls from a hub with faults. With any fault, the cache's content is compared with the server's
// files byte by byte.

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models/hub/hubtest"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestFaults pulls through faults that must not be visible from outside.
func TestFaults(t *testing.T) {
	t.Parallel()
	const shard = "model-00000-of-00001.safetensors"
	for name, fault := range map[string]func(hubtest.Request) hubtest.Fault{
		"list 429 with Retry-After": first(hubtest.Info,
			hubtest.Fault{Status: 429, RetryAfter: "1"}),
		"list 503": first(hubtest.Info, hubtest.Fault{Status: 503}),
		"list without sizes": func(hubtest.Request) hubtest.Fault {
			return hubtest.Fault{BareList: true}
		},
		"head 500":           first(hubtest.Head, hubtest.Fault{Status: 500}),
		"get 429":            first(hubtest.Get, hubtest.Fault{Status: 429}),
		"store 503":          first(hubtest.CDN, hubtest.Fault{Status: 503}),
		"store refuses once": first(hubtest.CDN, hubtest.Fault{Status: 403}),
		"cut":                everySecondCut,
		"stalled":            first(hubtest.CDN, hubtest.Fault{Stall: time.Minute}),
		"slow": func(hubtest.Request) hubtest.Fault {
			return hubtest.Fault{Rate: 2 << 20}
		},
		"corrupt once": func(r hubtest.Request) hubtest.Fault {
			return hubtest.Fault{Corrupt: r.Kind == hubtest.CDN && r.Path == shard && r.N == 3}
		},
		"corrupt small file": func(r hubtest.Request) hubtest.Fault {
			return hubtest.Fault{Corrupt: r.Kind == hubtest.Get && r.Path == "config.json" &&
				r.N == 0}
		},
		"no ranges": func(r hubtest.Request) hubtest.Fault {
			return hubtest.Fault{NoRanges: r.Kind == hubtest.CDN}
		},
		"no ranges, cut":  noRangesCut,
		"total lies once": first(hubtest.CDN, hubtest.Fault{Total: 5}),
		"length lies once": first(hubtest.CDN,
			hubtest.Fault{NoRanges: true, Length: 1 << 40}),
		"another ETag while get": first(hubtest.Get,
			hubtest.Fault{ETag: "0123456789012345678901234567890123456789"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sample(1 << 20)
			server, client, o := serve(t, r)
			server.Fault = fault
			if name == "stalled" {
				client.Stall = 2 * time.Second // more than a busy machine lets a connection wait
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			hosttest.Must(client.Pull(ctx, o))(t)
			whole(t, o, r)
		})
	}
}

type kind = hubtest.Kind

// first is a fault of the first request of a kind.
func first(k kind, f hubtest.Fault) func(hubtest.Request) hubtest.Fault {
	return func(r hubtest.Request) hubtest.Fault {
		if r.Kind == k && r.N == 0 {
			return f
		}
		return hubtest.Fault{}
	}
}

// everySecondCut cuts every second answer of the store, further in each time.
func everySecondCut(r hubtest.Request) hubtest.Fault {
	if r.Kind == hubtest.CDN && r.N%2 == 0 {
		return hubtest.Fault{Cut: 1000 + int64(r.N)*100}
	}
	return hubtest.Fault{}
}

func noRangesCut(r hubtest.Request) hubtest.Fault {
	if r.Kind != hubtest.CDN {
		return hubtest.Fault{}
	}
	f := hubtest.Fault{NoRanges: true}
	if r.N < 6 {
		f.Cut = 300_000
	}
	return f
}

// TestCorruptOnce checks that one damaged file is downloaded twice and no other.
func TestCorruptOnce(t *testing.T) {
	const shard = "model-00000-of-00001.safetensors"
	r := sample(1 << 20)
	server, client, o := serve(t, r)
	server.Fault = func(r hubtest.Request) hubtest.Fault {
		return hubtest.Fault{Corrupt: r.Kind == hubtest.CDN && r.Path == shard && r.N == 3}
	}
	hosttest.Must(client.Pull(t.Context(), o))(t)
	whole(t, o, r)
	for _, name := range fetched {
		want := r.Files[name].Size
		if name == shard {
			want *= 2
		}
		if got := server.Sent(name); got != want {
			t.Errorf("%d bytes of %s were sent, want %d", got, name, want)
		}
	}
}

// TestFlippedInCache flips a bit of each file in turn: the next pull downloads only that file
// again.
//
// SECURITY.md: `ossrun pull NAME --verify` finds that.
func TestFlippedInCache(t *testing.T) {
	r := sample(300_000)
	server, client, o := serve(t, r)
	hosttest.Must(client.Pull(t.Context(), o))(t)
	for _, name := range fetched {
		blob := store.BlobPath(o.Root, tune, r.Files[name].ETag())
		content := hosttest.Must(os.ReadFile(blob))(t)
		content[len(content)/2] ^= 8
		later := time.Now().Add(time.Second) // a file's time is only so fine
		hosttest.Check(t, errors.Join(os.WriteFile(blob, content, 0o644),
			os.Chtimes(blob, later, later)))
		server.Reset()
		hosttest.Must(client.Pull(t.Context(), o))(t)
		whole(t, o, r)
		if sent := server.Sent(""); sent != r.Files[name].Size || sent != server.Sent(name) {
			t.Errorf("after a flip in %s %d bytes were sent, of it %d", name, sent,
				server.Sent(name))
		}
	}
	// A flip that keeps the file's time is found with Verify.
	name := fetched[len(fetched)-1]
	blob := store.BlobPath(o.Root, tune, r.Files[name].ETag())
	stat := hosttest.Must(os.Stat(blob))(t)
	hosttest.Check(t, os.WriteFile(blob, make([]byte, stat.Size()), 0o644))
	hosttest.Check(t, os.Chtimes(blob, stat.ModTime(), stat.ModTime()))
	o.Verify = true
	hosttest.Must(client.Pull(t.Context(), o))(t)
	whole(t, o, r)
}
