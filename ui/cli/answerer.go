// Where a chat has its answers from: a server of this user that runs, or a model loaded for the
// chat alone.
//
// One engine a machine: weights that a server has loaded are not loaded again. A chat that names a
// device or a memory setting on its command line gets an engine of its own, and so does
// --alone.

package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/join"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/session"
)

// answerer is a model for one chat.
type answerer interface {
	session.Runner
	Close() error
}

// alone is the models of this process, of which one answers.
type alone struct {
	session.Runner
	models *serve.Models
}

func (a alone) Close() error {
	err, _ := a.models.Close() // nothing is kept beyond the process
	return err
}

// answererFor joins a server or loads a model; notice is a line for the person about it, "" for
// none. It calls chosen between the last question to the user and the long work. What happens later
// is said to tell.
func answererFor(c *cli.Context, t Terminal, o *serve.Options, ask bool, chosen func(),
	tell func(string)) (a answerer, notice string, err error) {
	if g := serverFor(c); g != nil {
		chosen()
		return &rejoining{now: g, tell: tell, again: func(ctx context.Context) (answerer, error) {
				if g := serverFor(c); g != nil {
					return g, nil
				}
				tell("the server is gone, so the model is loaded here")
				quiet := Terminal{In: t.In, Out: io.Discard, Err: io.Discard}
				return loadAlone(ctx, c, quiet, o, false, func() {})
			}}, "joined the server at " + g.Server.URL + ", which has the model loaded; " +
				"--alone loads it here", nil
	}
	a, err = loadAlone(c.Context, c, t, o, ask, chosen)
	return a, "", err
}

// loadAlone loads a model for this process.
func loadAlone(ctx context.Context, c *cli.Context, t Terminal, o *serve.Options, ask bool,
	chosen func()) (answerer, error) {
	o.Keep = serve.KeepOptions{Remember: session.RememberedFor}
	m, err := openModels(c, t, o)
	if err != nil {
		return nil, err
	}
	found, err := m.Find(absentModel(c, t, ask))
	if err == nil {
		chosen()
		for _, n := range m.Settled().Notes {
			o.Notify(n)
		}
		m.Choose(found)
		err = m.Ensure(ctx)
	}
	if err != nil {
		failed, _ := m.Close()
		return nil, errors.Join(err, failed)
	}
	return alone{m.First(), m}, nil
}

// ownEngine are flags that only an engine of one's own can follow.
var ownEngine = []string{"alone", "schema", "device", "gpu", "cpu-experts", "isolate", "threads",
	"max-model-len", "compute", "dense",
	"kv-cache-dtype", "gpu-memory-utilization", "deterministic"}

// serverFor is the running server that the chat can join, nil if there is none.
func serverFor(c *cli.Context) *join.Guest {
	for _, name := range ownEngine {
		if typed(c, name) {
			return nil
		}
	}
	folder, err := join.Folder()
	if err != nil {
		return nil // then no server has made a socket either
	}
	list, err := join.Servers(c.Context, folder)
	if err != nil {
		return nil
	}
	for _, s := range list {
		if s.Protocol != join.Protocol || s.State == join.Draining {
			continue
		}
		for i, m := range s.Models {
			if wantsModel(c.String("model"), i == 0, m) {
				return &join.Guest{Server: s, Model: m}
			}
		}
	}
	return nil
}

// wantsModel tells whether a chat for which name was given can be had with m, which is the server's
// first or another one.
func wantsModel(name string, first bool, m join.Model) bool {
	if name == "" { // the best that is here: not the demo beside a real one
		return first && (m.Name != models.Demo || !anyCached())
	}
	if strings.EqualFold(name, m.Name) || slices.ContainsFunc(m.Aliases,
		func(a string) bool { return strings.EqualFold(a, name) }) {
		return true
	}
	asked, ok := models.Lookup(name)
	served, known := models.Lookup(m.Name)
	return ok && known && asked.ID == served.ID
}

func anyCached() bool {
	cached, err := checkpoint.Cached()
	return err == nil && slices.ContainsFunc(cached,
		func(f checkpoint.Found) bool { return f.Complete })
}
