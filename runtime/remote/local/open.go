// Where a chat has its answers from: a server or another chat of this user that has the model
// loaded, or a model that is loaded here, which other chats can then join.
//
// One engine a machine: weights that a process has loaded are not loaded again. A chat that wants
// an engine of its own joins nobody, and nobody joins that.

package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/session"
)

// Opener opens the model of a chat. Absent and Chosen are not asked for a later one.
type Opener struct {
	Options   serve.Options // of a model that is loaded here
	OwnEngine bool          // join nobody, and let nobody join
	Version   string        // of this program, for those who join

	// Absent finds a model where none is here; it may ask the person.
	Absent  func(m *serve.Models) (checkpoint.Found, error)
	Chosen  func()            // called between the last question and the long work
	Report  func(line string) // is told what happens later
	Loading LoadScreen        // shows a load while the chat is open; nil: it is waited for
}

// LoadScreen shows how far a load is.
type LoadScreen interface {
	Begin(what string)
	Progress(what string) (show func(done, total int64), done func())
	End(err error)
	Busy() bool
}

// opened is a model that can answer, here or elsewhere.
type opened interface {
	session.Runner
	Close() error
}

// ownModel is one of the models of this process.
type ownModel struct {
	session.Runner
	models *serve.Models
	leave  func() // those who have joined, and a load that is under way
}

func (o *ownModel) Close() error {
	o.leave()
	err, _ := o.models.Close() // nothing is kept beyond the process
	return err
}

// Open opens the model of the options. ctx ends what it loads, and what it loads later.
func (o Opener) Open(ctx context.Context) (*Failover, error) {
	now, err := o.open(ctx, ctx, o.Options.Model)
	if err != nil {
		return nil, err
	}
	later := o
	later.Options.Notify = func(string) {} // the screen is the chat's
	later.Chosen = func() {}
	later.Absent = func(*serve.Models) (checkpoint.Found, error) {
		return checkpoint.Resolve(models.Demo)
	}
	return &Failover{now: now, name: o.Options.Model, report: o.Report,
		reopen: func(asking context.Context, name string) (opened, error) {
			return later.open(ctx, asking, name)
		}}, nil
}

// loadsAtOnce is how long a model may take before the chat opens without it.
const loadsAtOnce = 700 * time.Millisecond

// open opens a model by its name, "" for the best that is here. asking ends the wait for it.
func (o Opener) open(ctx, asking context.Context, name string) (opened, error) {
	if c := o.join(ctx, name, o.Options.Notify); c != nil {
		o.Chosen()
		return c, nil
	}
	options := o.Options
	options.Model, options.Keep = name, serve.KeepOptions{Remember: session.RememberedFor}
	options.Later = o.Report
	if name != o.Options.Model { // another model than the one that they were given for
		options.Lora = nil
	}
	if o.Loading != nil {
		options.Progress = o.Loading.Progress
	}
	alive, end := context.WithCancel(ctx)
	m, err := serve.New(alive, options)
	if err != nil {
		end()
		return nil, err
	}
	own := &ownModel{models: m, leave: end}
	found, err := m.Find(o.Absent)
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	o.Chosen()
	for _, n := range m.Settled().Notes {
		options.Notify(n)
	}
	m.Choose(found)
	own.Runner = m.First()
	if o.Loading != nil {
		c, leave := o.share(ctx, m, name)
		if c != nil {
			return c, own.Close()
		}
		own.leave = func() {
			leave()
			end() // a load that is under way
		}
	}
	if err := o.load(ctx, asking, m, found.Name); err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return own, nil
}

// load waits until the model is loaded, or for a moment where the chat can show how far it is.
func (o Opener) load(ctx, asking context.Context, m *serve.Models, name string) error {
	if o.Loading == nil {
		return m.Ensure(asking)
	}
	o.Loading.Begin("loading " + name)
	loaded := make(chan error, 1)
	go func() {
		err := m.Ensure(ctx) // Close ends it too
		o.Loading.End(err)
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
func (o Opener) share(ctx context.Context, m *serve.Models, name string) (*Client, func()) {
	nobody := func() {}
	folder, err := Folder()
	if err != nil || o.OwnEngine {
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
	if c := o.join(ctx, name, func(string) {}); c != nil {
		return c, nil
	}
	l, err := Listen(folder)
	if err != nil {
		return nil, nobody
	}
	return nil, Background(l, chatHost{m, o})
}

// chatHost is a chat that others can join.
type chatHost struct {
	*serve.Models
	of Opener
}

func (h chatHost) Status() Status {
	st := StatusOf(h.Models, h.of.Version)
	st.Kind, st.State = Chat, Ready
	if h.of.Loading.Busy() {
		st.State = Loading
	}
	return st
}

// Stop is not for a chat, which a person leaves.
func (h chatHost) Stop(bool) {}

// join is the process that has the model and can be joined, nil if there is none; report is given a
// sentence for one of another version.
func (o Opener) join(ctx context.Context, name string, report func(string)) *Client {
	if o.OwnEngine {
		return nil
	}
	list, _ := Running(ctx) // without a folder no server has made a socket either
	for _, s := range list {
		if s.State == Draining {
			continue
		}
		for i, m := range s.Models {
			switch {
			case !answers(name, i == 0, m):
			case s.Protocol == Protocol:
				return &Client{Server: s, Model: m}
			default:
				report(fmt.Sprintf("process %d has %s loaded and is an ossrun of another version, "+
					"which cannot be joined", s.PID, m.Name))
			}
		}
	}
	return nil
}

// answers tells whether a chat for name can be had with m, the server's first or another model.
func answers(name string, first bool, m Model) bool {
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
