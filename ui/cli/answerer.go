// Where a chat has its answers from: a server or another chat of this user that has the model
// loaded, the OpenAI port of any server (--endpoint), or a model that is loaded here, which other
// chats can then join.
//
// One engine a machine: weights that a process has loaded are not loaded again. A chat that names a
// device or a memory setting on its command line gets an engine of its own, and so does
// --alone; nobody joins that.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/remote"
	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/remote/local"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat"
)

// takeSeat finds the model that the chat begins with, and tells the chat of it. open is a chat that
// stays open: a person may be asked, and sees how far a load is. chosen is called between the last
// question to the person and the long work.
func takeSeat(c *cli.Context, t Terminal, o *serve.Options, open bool, tell func(string),
	chosen func(), talk *chat.Options) (answerer, error) {
	if url := c.String("endpoint"); url != "" {
		d, err := openEndpoint(c, url, tell)
		if err != nil {
			return nil, err
		}
		talk.Model, talk.Switch, talk.Models = d, d.to, d.models
		return d, nil
	}
	if open {
		talk.Loading = &chat.Loading{}
	}
	f := &finder{c: c, t: t, options: o, tell: tell, loading: talk.Loading}
	name := c.String("model")
	now, err := f.find(c.Context, t, name, open, chosen)
	if err != nil {
		return nil, err
	}
	if g, ok := now.(*local.Client); ok {
		where := "server at " + g.Server.URL
		if g.Server.Kind == local.Chat {
			where = fmt.Sprintf("chat of process %d", g.Server.PID)
		}
		talk.Notice = "joined the " + where + ", which has the model loaded; --alone loads it here"
	}
	m := &rejoining{now: now, tell: tell, name: name,
		again: func(ctx context.Context, name string) (answerer, error) {
			quiet := Terminal{In: t.In, Out: io.Discard, Err: io.Discard}
			return f.find(ctx, quiet, name, false, func() {})
		}}
	talk.Model, talk.Switch, talk.Models = m, m.to, m.others
	return m, nil
}

type answerer interface {
	session.Runner
	Close() error
}

// alone is the models of this process, of which one answers.
type alone struct {
	session.Runner
	models *serve.Models
	leave  func() // those who have joined, and a load that is under way
}

func (a *alone) Close() error {
	a.leave()
	err, _ := a.models.Close() // nothing is kept beyond the process
	return err
}

// loadsAtOnce is how long a model may take before the chat opens without it.
const loadsAtOnce = 700 * time.Millisecond

type finder struct {
	c       *cli.Context
	t       Terminal
	options *serve.Options
	tell    func(string)  // what happens later
	loading *chat.Loading // shows what is loaded while the chat is open; nil: it is waited for
}

func (f *finder) find(ctx context.Context, t Terminal, name string, ask bool,
	chosen func()) (answerer, error) {
	if g := serverFor(f.c, name); g != nil {
		chosen()
		return g, nil
	}
	o := *f.options
	o.Model, o.Keep = name, serve.KeepOptions{Remember: session.RememberedFor}
	o.Later = f.tell
	if f.loading != nil {
		o.Progress = f.loading.Progress
	}
	alive, end := context.WithCancel(f.c.Context)
	m, err := openModels(alive, f.c, t, &o)
	if err != nil {
		end()
		return nil, err
	}
	a := &alone{models: m, leave: end}
	found, err := m.Find(absentModel(f.c, t, m, ask))
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	chosen()
	for _, n := range m.Settled().Notes {
		o.Notify(n)
	}
	m.Choose(found)
	a.Runner = m.First()
	if f.loading != nil {
		g, leave := f.share(m, name)
		if g != nil {
			return g, a.Close()
		}
		a.leave = func() {
			leave()
			end() // a load that is under way
		}
	}
	if err := f.load(ctx, m, found.Name); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// load waits until the model is loaded, or for a moment where the chat can show how far it is.
func (f *finder) load(ctx context.Context, m *serve.Models, name string) error {
	if f.loading == nil {
		return m.Ensure(ctx)
	}
	f.loading.Begin("loading " + name)
	loaded := make(chan error, 1)
	go func() {
		err := m.Ensure(f.c.Context) // Close ends it too
		f.loading.End(err)
		loaded <- err
	}()
	select {
	case err := <-loaded:
		return err
	case <-time.After(loadsAtOnce):
		return nil
	}
}

// share lets other chats join this one, unless one began to load the model first: that is joined.
func (f *finder) share(m *serve.Models, name string) (*local.Client, func()) {
	nobody := func() {}
	folder, err := local.Folder()
	if err != nil || wantsOwn(f.c) {
		return nil, nobody
	}
	// a lock between looking and listening; without it two engines are better than none
	end := time.Now().Add(2 * time.Second)
	for ; time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if lock, err := store.TryLock(filepath.Join(folder, "chats.lock")); err == nil {
			defer lock.Close()
			break
		}
	}
	if g := serverFor(f.c, name); g != nil {
		return g, nil
	}
	l, err := local.Listen(folder)
	if err != nil {
		return nil, nobody
	}
	return nil, serveSocket(l, chatHost{m, f.loading})
}

// chatHost is a chat that others have joined.
type chatHost struct {
	*serve.Models
	loading *chat.Loading
}

func (h chatHost) Status() local.Status {
	st := statusOf(h.Models)
	st.Kind, st.State = local.Chat, local.Ready
	if h.loading.Busy() {
		st.State = local.Loading
	}
	return st
}

// Stop is not for a chat, which a person leaves.
func (h chatHost) Stop(bool) {}

// ownEngine are flags that only an engine of one's own can follow.
var ownEngine = []string{"alone", "device", "gpu", "cpu-experts", "isolate", "threads",
	"max-model-len", "compute", "dense",
	"kv-cache-dtype", "gpu-memory-utilization", "deterministic"}

func wantsOwn(c *cli.Context) bool {
	return typed(c, "schema") || // a grammar is not handed to another process
		slices.ContainsFunc(ownEngine, func(name string) bool { return typed(c, name) })
}

// serverFor is the process that has the model and can be joined, nil if there is none.
func serverFor(c *cli.Context, name string) *local.Client {
	if wantsOwn(c) {
		return nil
	}
	list, _ := runningServers(c.Context) // without a folder no server has made a socket either
	for _, s := range list {
		if s.Protocol != local.Protocol || s.State == local.Draining {
			continue
		}
		for i, m := range s.Models {
			if wantsModel(name, i == 0, m) {
				return &local.Client{Server: s, Model: m}
			}
		}
	}
	return nil
}

// wantsModel tells whether a chat for name can be had with m, the server's first or another model.
func wantsModel(name string, first bool, m local.Model) bool {
	if name == "" { // the best that is here: not the demo beside a real one
		cached, err := checkpoint.Cached()
		real := err == nil && slices.ContainsFunc(cached,
			func(f checkpoint.Found) bool { return f.Complete })
		return first && (m.Name != models.Demo || !real)
	}
	if strings.EqualFold(name, m.Name) || slices.ContainsFunc(m.Aliases,
		func(a string) bool { return strings.EqualFold(a, name) }) {
		return true
	}
	asked, ok := models.Lookup(name)
	served, known := models.Lookup(m.Name)
	return ok && known && asked.ID == served.ID
}

type distant struct {
	session.Runner
	port *remote.Port
}

func (d distant) Close() error {
	d.port.Close()
	return nil
}

// openEndpoint asks the port at url for its models and takes the one that is wanted.
func openEndpoint(c *cli.Context, url string, tell func(string)) (*distant, error) {
	for _, name := range ownEngine {
		if typed(c, name) {
			return nil, fail(exitUsage, "--endpoint has its model and its settings: leave --%s out",
				name)
		}
	}
	port, err := remote.Open(c.Context, url, portKey(), tell)
	if err != nil {
		return nil, err
	}
	model, err := port.Get(c.Context, c.String("model"))
	if err != nil {
		port.Close()
		return nil, fail(exitUsage, "%s", err)
	}
	return &distant{model, port}, nil
}

func (d distant) models(context.Context) []session.ModelInfo { return d.port.List() }

func (d distant) to(ctx context.Context, name string) (session.Runner, error) {
	return d.port.Get(ctx, name)
}

// openPort opens the server at base. Its first model is meant where none is named.
func openPort(ctx context.Context, base string, model *string) (*client.Client, error) {
	c, err := client.New(base, portKey())
	if err != nil {
		return nil, fail(exitUsage, "%s", err)
	}
	if *model == "" {
		if *model, err = c.FirstModel(ctx); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// portKey is the key that another server is sent.
func portKey() string {
	return cmp.Or(os.Getenv("OSSRUN_API_KEY"), os.Getenv("VLLM_API_KEY"),
		os.Getenv("OPENAI_API_KEY"))
}
