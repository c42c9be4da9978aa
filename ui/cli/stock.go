// The models that a server can answer with: the one it was started for, and those of the catalogue that are on this machine.
// A request's `model` chooses; package loaded keeps the ones in use.
//
// What must stay true: a client can name what this machine has already and nothing else, neither a folder nor a download;
// a model is loaded beside another one only where both have a context that agents can work with.

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/loaded"
)

// besideContext is the least context, in tokens, for which a model is loaded beside another one. With less, the other one is
// unloaded instead.
const besideContext = 32768

type stock struct {
	c     *cli.Context
	t     Terminal
	k     knobs
	kept  *kept
	set   *loaded.Set
	first checkpoint.Found // the model of --model
	names []string         // of --served-model-name; with them the server has one model only

	mu    sync.Mutex
	found map[string]checkpoint.Found // by key
	long  map[string]int              // context lengths that are known
}

func newStock(c *cli.Context, t Terminal, k knobs, first checkpoint.Found, kept *kept) *stock {
	s := &stock{c: c, t: t, k: k, kept: kept, first: first, found: map[string]checkpoint.Found{}, long: map[string]int{}}
	for _, n := range strings.Split(c.String("served-model-name"), ",") {
		if n = strings.TrimSpace(n); n != "" {
			s.names = append(s.names, n)
		}
	}
	s.set = loaded.New(loaded.Options{Load: s.load, KeepAlive: k.keepAlive})
	s.found[keyOf(first)] = first
	return s
}

// keyOf is what a model is kept under: where it lies.
func keyOf(f checkpoint.Found) string {
	if f.Demo {
		return models.Demo
	}
	return f.Path
}

// load is the set's. The error wraps session.ErrUnavailable.
func (s *stock) load(key string, beside []loaded.Model) (loaded.Model, error) {
	s.mu.Lock()
	found := s.found[key]
	s.mu.Unlock()
	m, err := s.loadBeside(found, beside)
	if errors.Is(err, loaded.ErrNoRoom) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", session.ErrUnavailable, err)
	}
	s.mu.Lock()
	s.long[key] = m.ContextLength()
	s.mu.Unlock()
	return m, nil
}

func (s *stock) loadBeside(found checkpoint.Found, beside []loaded.Model) (*session.Model, error) {
	dev, err := openDevice(s.c)
	if err != nil {
		return nil, err
	}
	_, free := dev.Memory()
	taken := s.kept.untouched()
	for _, m := range beside { // what the others have planned is theirs, though it may not be touched yet
		taken += m.Plan().Total
	}
	if kindOf(dev) == onCPU {
		free -= taken
	}
	if len(beside) > 0 && free < found.Bytes {
		return nil, errors.Join(loaded.ErrNoRoom, dev.Close())
	}
	if dev, err = fitting(s.c, dev, found); err != nil {
		return nil, fail(exitFailure, "%s", err)
	}
	k, err := readKnobs(s.c, kindOf(dev), deviceMemory(dev)) // fitting may have chosen another device
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	by := replaced(found, k.dense)
	if err := readAhead(s.c.Context, s.t, dev, found, by); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	o := k.load()
	o.Reopen, o.Fill, o.Store, o.Spill = reopen(s.c, found), fill(s.c.Context, s.t, dev, by), s.kept.store, s.kept.spill
	if kindOf(dev) == onCPU {
		o.Withheld = taken
	}
	m, err := loadOnto(s.c.Context, s.t, found, dev, o)
	if err != nil {
		if s.c.Context.Err() != nil {
			return nil, errors.Join(context.Canceled, dev.Close())
		}
		err = errors.Join(&exitError{exitModel, err.Error()}, dev.Close())
		if len(beside) > 0 {
			return nil, errors.Join(loaded.ErrNoRoom, err) // alone it may fit; if not, that error is the one to be told
		}
		return nil, err
	}
	if len(beside) > 0 && m.ContextLength() < besideContext && !found.Demo {
		return nil, errors.Join(loaded.ErrNoRoom, m.Close())
	}
	return m, nil
}

// shownName is the name of a model in answers, metrics and lists.
func (s *stock) shownName(f checkpoint.Found) string {
	if len(s.names) > 0 && keyOf(f) == keyOf(s.first) {
		return s.names[0]
	}
	return f.Name
}

// aliases are the other names that clients know a model by.
func (s *stock) aliases(f checkpoint.Found) []string {
	if len(s.names) > 0 && keyOf(f) == keyOf(s.first) {
		return s.names[1:]
	}
	e, ok := models.Lookup(f.Name)
	if !ok || e.HF == "" {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values([]string{e.HF, strings.Replace(f.Name, "gpt-oss-", "gpt-oss:", 1), e.ID})))
}

// others are the catalogue's models that are here, besides the first.
func (s *stock) others() []checkpoint.Found {
	if len(s.names) > 0 {
		return nil
	}
	cached, err := checkpoint.Cached()
	if err != nil {
		return nil // a cache that cannot be read has nothing to offer
	}
	return slices.DeleteFunc(cached, func(f checkpoint.Found) bool { return !f.Complete || keyOf(f) == keyOf(s.first) })
}

// List is the model that is served by default, then those that a request can switch to.
func (s *stock) List() []session.ModelInfo {
	var list []session.ModelInfo
	for _, f := range append([]checkpoint.Found{s.first}, s.others()...) {
		h := &handle{s, f}
		info := session.ModelInfo{ID: h.ID(), Aliases: s.aliases(f), ContextLength: h.ContextLength(), Created: started.Unix()}
		list = append(list, info)
	}
	return list
}

// Get finds a model by what a client calls it.
func (s *stock) Get(_ context.Context, name string) (session.Runner, error) {
	if name == "" || strings.EqualFold(name, s.shownName(s.first)) ||
		slices.ContainsFunc(s.aliases(s.first), func(a string) bool { return strings.EqualFold(a, name) }) {
		return &handle{s, s.first}, nil
	}
	e, ok := models.Lookup(name)
	if !ok || len(s.names) > 0 {
		return nil, fmt.Errorf("%w %q", session.ErrUnknownModel, name)
	}
	found, err := checkpoint.Resolve(e.ID)
	if err != nil {
		return nil, fmt.Errorf("%w %q: %s", session.ErrUnknownModel, name, err)
	}
	s.mu.Lock()
	s.found[keyOf(found)] = found
	s.mu.Unlock()
	return &handle{s, found}, nil
}

// Stats are the counters of the loaded models, for the metrics.
func (s *stock) Stats() map[string]sched.Stats {
	all := map[string]sched.Stats{}
	for _, st := range s.set.Status() {
		if st.Model == nil {
			continue
		}
		s.mu.Lock()
		found := s.found[st.Key]
		s.mu.Unlock()
		all[s.shownName(found)] = st.Model.Stats()
	}
	return all
}

// handle is a model that is loaded when a turn wants it.
type handle struct {
	stock *stock
	found checkpoint.Found
}

func (h *handle) ID() string { return h.stock.shownName(h.found) }

// ContextLength is that of the last load, before the first one what was asked for or what the model was made for.
func (h *handle) ContextLength() int {
	h.stock.mu.Lock()
	defer h.stock.mu.Unlock()
	if n := h.stock.long[keyOf(h.found)]; n > 0 {
		return n
	}
	if h.stock.k.maxModelLen > 0 {
		return h.stock.k.maxModelLen
	}
	e, _ := models.Lookup(h.found.Name)
	return e.Spec.MaxPosition
}

// Device is "" while the model is not loaded.
func (h *handle) Device() string {
	if m := h.stock.set.Find(keyOf(h.found)); m != nil {
		return m.Device()
	}
	return ""
}

func (h *handle) Start(ctx context.Context, r session.Request) (session.Turn, error) {
	return h.stock.set.Start(ctx, keyOf(h.found), r)
}
