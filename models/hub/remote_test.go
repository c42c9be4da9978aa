package hub_test

// Files that are read in place, from a hub with faults.

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/hub/hubtest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

const remoteShard = "model-00000-of-00001.safetensors"

// readRemote reads the first shard in pieces of several chunks, and config.json.
func readRemote(ctx context.Context, client *hub.Client, r *hubtest.Repo, between func()) error {
	at, err := client.Remote(ctx, tune, "")
	if err != nil {
		return err
	}
	config, err := at.ReadFile(ctx, "config.json", 1<<20)
	if err != nil {
		return err
	}
	if want := r.Files["config.json"].Bytes; !bytes.Equal(config, want) {
		return errors.New("config.json differs")
	}
	f, err := at.Open(ctx, remoteShard)
	if err != nil {
		return err
	}
	size := r.Files[remoteShard].Size
	got, want := make([]byte, 300_000), make([]byte, 300_000)
	for off := int64(0); off < size; off += int64(len(got)) {
		n := min(int64(len(got)), size-off)
		if _, err := f.ReadAt(got[:n], off); err != nil {
			return err
		}
		if _, err := r.Files[remoteShard].ReadAt(want[:n], off); err != nil {
			return err
		}
		if !bytes.Equal(got[:n], want[:n]) {
			return errors.New("the shard differs")
		}
		if between != nil {
			between()
			between = nil
		}
	}
	return nil
}

// TestRemote: transient faults are invisible, and hardly a byte is sent twice.
func TestRemote(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(hubtest.Request) hubtest.Fault{
		"none":         nil,
		"store 429":    first(hubtest.CDN, hubtest.Fault{Status: 429, RetryAfter: "1"}),
		"store 403":    first(hubtest.CDN, hubtest.Fault{Status: 403}),
		"head 503":     first(hubtest.Head, hubtest.Fault{Status: 503}),
		"small is cut": first(hubtest.Get, hubtest.Fault{Cut: 10, NoRanges: true}),
		"stalled":      first(hubtest.CDN, hubtest.Fault{Stall: time.Minute}),
		"wrong length": first(hubtest.Get, hubtest.Fault{NoRanges: true, Length: 7}),
		"cut":          everySecondCut,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sample(1 << 20)
			server, client, _ := serve(t, r)
			server.Fault = fault
			if client.Stall = time.Minute; name == "stalled" {
				client.Stall = 2 * time.Second
			}
			client.Token = "a secret"
			hosttest.Check(t, readRemote(t.Context(), client, r, nil))
			if sent := server.Sent(remoteShard); name != "stalled" && sent > 1<<20+64<<10 {
				t.Errorf("%d bytes of the shard were sent", sent)
			}
			if server.Leaked() {
				t.Error("the store was sent the token")
			}
		})
	}
}

// TestRemoteExpires: the signature of an address ends between two reads.
func TestRemoteExpires(t *testing.T) {
	t.Parallel()
	r := sample(1 << 20)
	server, client, _ := serve(t, r)
	hosttest.Check(t, readRemote(t.Context(), client, r, server.Expire))
	if heads := server.Requests(hubtest.Head, remoteShard); heads != 2 {
		t.Errorf("%d times the hub was asked for the address", heads)
	}
}

// TestRemoteRefuses: every failure is one sentence, and contents are never mixed.
func TestRemoteRefuses(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	for name, x := range map[string]struct {
		fault  hubtest.Fault
		of     kind
		breaks func(*hubtest.Server, *hubtest.Repo, *hub.Client)
		ctx    context.Context
		want   string
	}{
		"no ranges": {fault: hubtest.Fault{NoRanges: true}, of: hubtest.CDN,
			want: "sends whole files only: run ossrun pull hf:someone/tune first"},
		"other content behind the address": {fault: hubtest.Fault{Total: 5}, of: hubtest.CDN,
			want: "has changed on"},
		"damaged": {fault: hubtest.Fault{Corrupt: true}, of: hubtest.Get,
			want: "config.json arrived damaged"},
		"never there": {fault: hubtest.Fault{Status: http.StatusBadGateway}, of: hubtest.CDN,
			want: "cannot be reached: status 502 (attempts: 8)"},
		"always cut": {fault: hubtest.Fault{Cut: -1}, of: hubtest.CDN,
			want: "the connection was cut (attempts: 8)"},
		"offline": {breaks: func(_ *hubtest.Server, _ *hubtest.Repo, c *hub.Client) {
			c.Offline = true
		}, want: "offline"},
		"no weights": {breaks: func(_ *hubtest.Server, r *hubtest.Repo, _ *hub.Client) {
			for name := range r.Files {
				if strings.HasSuffix(name, ".safetensors") {
					delete(r.Files, name)
				}
			}
		}, want: "has no model*.safetensors"},
		"ended": {ctx: ended, want: "enough"},
	} {
		t.Run(name, func(t *testing.T) {
			r := sample(1 << 20)
			server, client, _ := serve(t, r)
			if x.of != "" {
				server.Fault = func(r hubtest.Request) (f hubtest.Fault) {
					if r.Kind == x.of {
						f = x.fault
					}
					return f
				}
			}
			if x.breaks != nil {
				x.breaks(server, r, client)
			}
			ctx := t.Context()
			if x.ctx != nil {
				ctx = x.ctx
			}
			if err := readRemote(ctx, client, r, nil); err == nil ||
				!strings.Contains(err.Error(), x.want) {
				t.Errorf("%v, want %q", err, x.want)
			}
		})
	}
	// the hub has other content when a new address is requested
	r := sample(1 << 20)
	server, client, _ := serve(t, r)
	err := readRemote(t.Context(), client, r, func() {
		next := sample(1 << 20)
		next.Files[remoteShard] = hubtest.Generated(1<<20, 99)
		server.Add(tune.ID(), next)
	})
	if err == nil || !strings.Contains(err.Error(), "the list says sha256") {
		t.Errorf("of another content: %v", err)
	}
	at := hosttest.Must(client.Remote(t.Context(), tune, ""))(t)
	if _, err := at.Open(t.Context(), "nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := at.ReadFile(t.Context(), remoteShard, 1000); err == nil ||
		!strings.Contains(err.Error(), "more than the 1000") {
		t.Errorf("a large file: %v", err)
	}
	f := hosttest.Must(at.Open(t.Context(), remoteShard))(t)
	if _, err := f.ReadAt(make([]byte, 2), 1<<20-1); err == nil || errors.Is(err, os.ErrClosed) {
		t.Errorf("beyond the end: %v", err)
	}
}
