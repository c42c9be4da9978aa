// The server's side of the socket.

package local

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/session"
)

// Host serves those who join through the socket.
type Host interface {
	Status() Status
	Get(ctx context.Context, model string) (session.Runner, error)
	// Stop begins the end of the server and returns at once.
	Stop(now bool)
}

var started = time.Now()

// StatusOf describes the models that this process serves.
func StatusOf(models *serve.Models, version string) Status {
	st := Status{Protocol: Protocol, Version: version, PID: os.Getpid(), Started: started}
	for _, status := range models.Status() {
		m := Model{Name: status.ID, Aliases: status.Aliases, State: string(status.State),
			Source: status.Source, Context: status.ContextLength}
		if status.Model != nil {
			now := status.Model.Stats()
			m.Device, m.Context, m.Bytes = status.Model.Device(), status.Model.ContextLength(),
				status.Model.Plan().Total
			m.Dense = status.Model.Dense()
			m.Running, m.Waiting = now.Running, now.Waiting
			if now.PagesTotal > 0 {
				m.KV = float64(now.PagesUsed) / float64(now.PagesTotal)
			}
		}
		if !status.Unloads.IsZero() {
			m.Unloads = &status.Unloads
		}
		st.Models = append(st.Models, m)
	}
	return st
}

// Background serves on l until stop is called.
func Background(l net.Listener, h Host) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = Serve(ctx, l, h) // ends with the listener
	}()
	return func() {
		l.Close()
		cancel()
		<-done
	}
}

// Serve answers on l until l is closed and every connection has ended. A failed accept does not end
// it. ctx ends the running turns.
func Serve(ctx context.Context, l net.Listener, h Host) error {
	var conns sync.WaitGroup
	defer conns.Wait()
	var wait time.Duration
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil { // such as too many open files, which may pass
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return err
			}
			continue
		}
		wait = 0
		conns.Go(func() {
			defer conn.Close()
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			answer(ctx, conn, h)
		})
	}
}

// answer executes one order. An error of the connection means that the client is gone.
func answer(ctx context.Context, conn net.Conn, h Host) {
	read, write := json.NewDecoder(conn), json.NewEncoder(conn)
	write.SetEscapeHTML(false)
	var o order
	if read.Decode(&o) != nil {
		return
	}
	switch o.Do {
	case doStatus:
		_ = write.Encode(h.Status())
	case doStop:
		_ = write.Encode(struct{}{}) // before it ends this connection
		h.Stop(o.Now)
	case doTurn:
		if o.Request != nil {
			turn(ctx, read, write, h, o)
		}
	}
}

// turn runs one turn. Once serving ends it writes nothing: a client that read of a cancelled turn
// would show it as stopped instead of retrying elsewhere.
func turn(serving context.Context, read *json.Decoder, write *json.Encoder, h Host, o order) {
	ctx, cancel := context.WithCancel(serving)
	defer cancel()
	go func() { // ends with the connection
		var next order
		_ = read.Decode(&next) // an order to cancel, or the client is gone
		cancel()
	}()
	runner, err := h.Get(ctx, o.Model)
	var t session.Turn
	if err == nil {
		t, err = runner.Start(ctx, *o.Request)
	}
	if err != nil {
		if serving.Err() == nil {
			_ = write.Encode(turnLine{Refused: errorToWire(err)})
		}
		return
	}
	failed := write.Encode(turnLine{Started: true}) != nil
	for e, ok := t.Next(); ok; e, ok = t.Next() {
		if _, last := e.(session.Done); last || failed {
			continue
		}
		if failed = write.Encode(eventLine(e)) != nil; failed {
			cancel()
		}
	}
	if result := t.Result(); !failed && serving.Err() == nil {
		_ = write.Encode(turnLine{Result: &result, Err: errorToWire(result.Done.Err)})
	}
}
