// How a chat gets its model: from a server or another chat of this user that has it loaded, or by
// loading it here, where other chats can then join.
//
// One engine a machine: weights that a process has loaded are not loaded again. A chat with
// OwnEngine neither joins nor can be joined.

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
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/session"
)

// Opener opens the model of a chat. Later models are opened without Absent and Chosen.
type Opener struct {
	Options   serve.Options // for a model that is loaded here
	OwnEngine bool          // neither join nor be joined
	Version   string        // of this program, for processes that join

	// Absent finds a model if none is here; it may ask the user.
	Absent  func(m *serve.Models) (checkpoint.Model, error)
	Chosen  func()            // called between the last question and the long work
	Report  func(line string) // receives later messages
	Loading LoadScreen        // shows a load while the chat is open; nil: the chat waits for it
}

// LoadScreen shows the progress of a load.
type LoadScreen interface {
	Begin(what string)
	Progress(what string) (show func(done, total int64), done func())
	End(err error)
	Busy() bool
}

// openModel is a model that can answer, here or elsewhere.
type openModel interface {
	session.Runner
	Close() error
}

// localModel is one of the models of this process.
type localModel struct {
	session.Runner
	models *serve.Models
	cancel func() // closes the socket, and cancels a load
}

func (o *localModel) Source() string { return session.SourceOf(o.Runner) }

func (o *localModel) Close() error {
	o.cancel()
	err, _ := o.models.Close() // nothing is kept beyond the process
	return err
}

// Open opens the model of the options. ctx ends its loads, also later ones.
func (o Opener) Open(ctx context.Context) (*Failover, error) {
	now, err := o.open(ctx, ctx, o.Options.Model)
	if err != nil {
		return nil, err
	}
	later := o
	later.Options.Notify = func(string) {} // the chat owns the screen
	later.Chosen, later.Options.Fetch = func() {}, nil
	later.Absent = func(*serve.Models) (checkpoint.Model, error) {
		return checkpoint.Resolve(models.Demo)
	}
	return &Failover{active: now, name: o.Options.Model, report: o.Report,
		reopen: func(asking context.Context, name string) (openModel, error) {
			return later.open(ctx, asking, name)
		}}, nil
}

// loadWait is how long the chat waits for a load before it opens without the model.
const loadWait = 700 * time.Millisecond

// open opens a model by its name, "" for the best here. asking ends the wait for it.
func (o Opener) open(ctx, asking context.Context, name string) (openModel, error) {
	if c := o.join(ctx, name, o.Options.Notify); c != nil {
		o.Chosen()
		return c, nil
	}
	options := o.Options
	options.Model, options.Keep = name, serve.KeepOptions{Remember: records.RememberedFor}
	options.NotifyBackground = o.Report
	if name != o.Options.Model { // another model than the one that they were given for
		options.Adapters = nil
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
	model := &localModel{models: m, cancel: end}
	match, err := m.Find(o.Absent)
	if err != nil {
		return nil, errors.Join(err, model.Close())
	}
	o.Chosen()
	for _, n := range m.Effective().Notes {
		options.Notify(n)
	}
	m.Choose(match)
	model.Runner = m.First()
	if o.Loading != nil {
		c, leave := o.shareOrJoin(ctx, m, name)
		if c != nil {
			return c, model.Close()
		}
		model.cancel = func() {
			leave()
			end() // a running load
		}
	}
	if err := o.load(ctx, asking, m, match.Name); err != nil {
		return nil, errors.Join(err, model.Close())
	}
	return model, nil
}

// load waits until the model is loaded, or only for a moment if the chat can show the progress.
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
	case <-time.After(loadWait):
		return nil
	}
}

// shareOrJoin lets other chats join this one, or joins one that began to load the model first.
func (o Opener) shareOrJoin(ctx context.Context, m *serve.Models, name string) (*Client, func()) {
	nothing := func() {}
	folder, err := Folder()
	if err != nil || o.OwnEngine {
		return nil, nothing
	}
	// locks from joining to listening; if that fails, two engines are better than none
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
		return nil, nothing
	}
	return nil, Background(l, chatHost{m, o})
}

// chatHost is a chat that others can join.
type chatHost struct {
	*serve.Models
	opener Opener
}

func (h chatHost) Status() Status {
	st := StatusOf(h.Models, h.opener.Version)
	st.Kind, st.State = Chat, Ready
	if h.opener.Loading.Busy() {
		st.State = Loading
	}
	return st
}

// Stop does nothing: a chat is ended by its user.
func (h chatHost) Stop(bool) {}

// join returns the process that has the model and can be joined, or nil; report receives a sentence
// about a process of another version.
func (o Opener) join(ctx context.Context, name string, report func(string)) *Client {
	if o.OwnEngine {
		return nil
	}
	list, _ := Running(ctx) // without a folder there is no socket either
	for _, s := range list {
		if s.State == Draining {
			continue
		}
		for i, m := range s.Models {
			switch {
			case !isServedBy(name, i == 0, m):
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

// isServedBy tells whether a chat for name can use m, the server's first or another model.
func isServedBy(name string, first bool, m Model) bool {
	if name == "" { // the best model here: the demo only if there is no other
		cached, err := checkpoint.Cached()
		real := err == nil && slices.ContainsFunc(cached,
			func(f checkpoint.Model) bool { return f.Complete })
		return first && (m.Name != models.Demo || !real)
	}
	if strings.EqualFold(name, m.Name) || slices.ContainsFunc(m.Aliases,
		func(a string) bool { return strings.EqualFold(a, name) }) {
		return true
	}
	if m.Source != "" {
		source, err := checkpoint.Resolve(name)
		return err == nil && source.Source() == m.Source
	}
	requested, ok := models.Lookup(name)
	served, servedOK := models.Lookup(m.Name)
	return ok && servedOK && requested.ID == served.ID
}
