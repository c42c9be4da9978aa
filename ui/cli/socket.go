// The socket of a server, through which other processes of this user join it, ask how it is, and
// stop it.

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
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/session"
)

var started = time.Now()

// openSocket makes it and returns what closes it. A server without one serves all the same.
func (s *server) openSocket() (closeIt func()) {
	s.sayOthers()
	folder, err := join.Folder()
	var l net.Listener
	if err == nil {
		l, err = join.Listen(folder)
	}
	if err != nil {
		fmt.Fprintf(s.t.Err,
			"ossrun: chats cannot join this server, and ossrun ps does not see it: %s\n", err)
		return func() {}
	}
	return serveSocket(l, s)
}

func serveSocket(l net.Listener, h join.Host) (closeIt func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = join.Serve(ctx, l, h) // ends with the listener
	}()
	return func() {
		l.Close()
		cancel()
		<-ended
	}
}

// sayOthers tells that the weights are in memory already.
func (s *server) sayOthers() {
	list, _ := runningServers(s.c.Context) // none that can be asked
	for _, other := range list {
		for _, m := range other.Models {
			if m.Name == s.models.First().ID() && m.State != string(serve.Unloaded) {
				where := "at " + other.URL
				if other.Kind == join.Chat {
					where = "to a chat"
				}
				fmt.Fprintf(s.t.Err, "ossrun: process %d serves %s already, %s; this one "+
					"loads it a second time\n", other.PID, m.Name, where)
			}
		}
	}
}

// whoListens names the server of this user that has a port.
func whoListens(port int) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	list, _ := runningServers(ctx) // none that can be asked
	for _, s := range list {
		if strings.HasSuffix(s.URL, ":"+strconv.Itoa(port)) {
			return fmt.Sprintf(" (ossrun stop %d does)", s.PID)
		}
	}
	return ""
}

// Status is what ossrun ps shows.
func (s *server) Status() join.Status {
	st := statusOf(s.models)
	st.URL, st.State = s.url(), s.state.Load().(join.State)
	return st
}

func statusOf(models *serve.Models) join.Status {
	st := join.Status{Protocol: join.Protocol, Version: build().Version, PID: os.Getpid(),
		Started: started}
	for _, of := range models.Status() {
		m := join.Model{Name: of.ID, Aliases: of.Aliases, State: string(of.State),
			Context: of.ContextLength}
		if of.Model != nil {
			now := of.Model.Stats()
			m.Device, m.Context, m.Bytes = of.Model.Device(), of.Model.ContextLength(),
				of.Model.Plan().Total
			m.Dense = of.Model.Dense()
			m.Running, m.Waiting = now.Running, now.Waiting
			if now.PagesTotal > 0 {
				m.KV = float64(now.PagesUsed) / float64(now.PagesTotal)
			}
		}
		if !of.Unloads.IsZero() {
			m.Unloads = &of.Unloads
		}
		st.Models = append(st.Models, m)
	}
	return st
}

// Get finds a model for a process that has joined.
func (s *server) Get(ctx context.Context, model string) (session.Runner, error) {
	return s.models.Get(ctx, model)
}

// Stop is ossrun stop.
func (s *server) Stop(now bool) {
	select {
	case s.stop <- now:
	default: // it was said twice already
	}
}
