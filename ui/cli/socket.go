// The socket of a server, through which other processes of this user join it, ask how it is, and stop it.

package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/join"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/loaded"
)

// openSocket makes it and returns what closes it. A server without one serves all the same.
func (s *server) openSocket() (closeIt func()) {
	folder, err := join.Folder()
	var l net.Listener
	if err == nil {
		s.sayOthers(folder)
		l, err = join.Listen(folder)
	}
	if err != nil {
		fmt.Fprintf(s.t.Err, "ossrun: chats cannot join this server, and ossrun ps does not see it: %s\n", err)
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = join.Serve(ctx, l, s) // ends with the listener
	}()
	return func() {
		l.Close()
		cancel()
		<-ended
	}
}

// sayOthers tells that the weights are in memory already.
func (s *server) sayOthers(folder string) {
	list, err := join.Servers(s.c.Context, folder)
	if err != nil {
		return
	}
	for _, other := range list {
		for _, m := range other.Models {
			if m.Name == s.stock.first.Name && m.State != stateUnloaded {
				fmt.Fprintf(s.t.Err, "ossrun: process %d serves %s already, at %s; this one loads it a second time\n", other.PID, m.Name, other.URL)
			}
		}
	}
}

// whoListens names the server of this user that has a port.
func whoListens(port int) string {
	folder, err := join.Folder()
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	list, err := join.Servers(ctx, folder)
	if err != nil {
		return ""
	}
	for _, s := range list {
		if strings.HasSuffix(s.URL, ":"+strconv.Itoa(port)) {
			return fmt.Sprintf(" (ossrun stop %d does)", s.PID)
		}
	}
	return ""
}

const stateUnloaded = "unloaded"

// Status is what ossrun ps shows.
func (s *server) Status() join.Status {
	st := join.Status{Protocol: join.Protocol, Version: build().Version, PID: os.Getpid(), URL: s.url(), State: s.state.Load().(join.State), Started: started}
	kept := map[string]loaded.Status{}
	for _, k := range s.stock.set.Status() {
		kept[k.Key] = k
	}
	for _, info := range s.stock.List() {
		runner, err := s.stock.Get(context.Background(), info.ID)
		if err != nil {
			continue // it was removed from the cache between the two calls
		}
		m := join.Model{Name: info.ID, Aliases: info.Aliases, State: stateUnloaded, Context: info.ContextLength}
		if k, ok := kept[keyOf(runner.(*handle).found)]; ok {
			m.State = string(k.State)
			if k.Model != nil {
				now := k.Model.Stats()
				m.Device, m.Context, m.Bytes = k.Model.Device(), k.Model.ContextLength(), k.Model.Plan().Total
				m.Running, m.Waiting = now.Running, now.Waiting
				if now.PagesTotal > 0 {
					m.KV = float64(now.PagesUsed) / float64(now.PagesTotal)
				}
			}
			if !k.Until.IsZero() {
				m.Unloads = &k.Until
			}
		}
		st.Models = append(st.Models, m)
	}
	return st
}

// Get finds a model for a process that has joined.
func (s *server) Get(ctx context.Context, model string) (session.Runner, error) {
	return s.stock.Get(ctx, model)
}

// Stop is ossrun stop.
func (s *server) Stop(now bool) {
	select {
	case s.stop <- now:
	default: // it was said twice already
	}
}
