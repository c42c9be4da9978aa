// Package serve decides which model runs where. A verb holds one Models: it finds the model, opens
// the device, plans the memory, loads, keeps models ready, reopens failed devices, and closes
// everything.
//
// What must stay true: clients can name only models already on this machine, neither a folder nor a
// download; two models are loaded only if both have a context that agents can work with. Only this
// package opens devices (imports_test.go).
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

var started = time.Now()

// Models are the models of this process, safe for concurrent use once Choose returned.
type Models struct {
	ctx     context.Context // cancels loads
	options Options
	settled Settled // for the device opened first
	// memory plan of a server's requests; zero without a server
	requests Requests
	loaded   *loadedSet
	kept     *kept
	first    checkpoint.Found // the default for requests without a model
	// adapters are the first model with an adapter each, served under the adapter's name
	tunes    []checkpoint.Found
	together bool // first and adapters share one engine

	damaged   chan error // see Damaged
	upstreams *Upstreams // nil: models are loaded by this process

	mu sync.Mutex
	// spare is the backend opened by New for the first load
	spare    engine.Backend
	found    map[string]checkpoint.Found // by key
	contexts map[string]int              // known context lengths, by key
}

// New opens the backend. ctx also ends later loads. Choose must follow before any turn.
func New(ctx context.Context, o Options) (*Models, error) {
	o.Settings.DenseCache = cmp.Or(o.Settings.DenseCache, DenseFolder())
	m := newModels(ctx, o)
	var err error
	if m.spare, err = m.open(); err != nil {
		return nil, err
	}
	m.settled = settledFor(m.spare, o)
	if o.MaxBody > 0 {
		m.requests, err = PlanRequests(m.settled.Settings, o.MaxBody)
		if m.requests.Tools = o.Tools; err != nil {
			return nil, errors.Join(err, m.spare.Close())
		}
	}
	return m, nil
}

func newModels(ctx context.Context, o Options) *Models {
	if o.Later == nil {
		o.Later = o.Notify
	}
	m := &Models{ctx: ctx, options: o, found: map[string]checkpoint.Found{},
		contexts: map[string]int{}, damaged: make(chan error, 1)}
	m.loaded = newLoadedSet(m.loadKey, o.KeepAlive)
	return m
}

// Effective returns the options with the device's defaults filled in.
func (m *Models) Settled() Settled { return m.settled }

// Backend is the backend opened by New, until the first load takes it.
func (m *Models) Backend() engine.Backend { return m.spare }

// OnGPU reports whether Backend is a GPU.
func (m *Models) OnGPU() bool { return m.spare != nil && onGPU(m.spare) }

// Find finds the model of the options, else the best cached one that fits, else calls absent. The
// adapters of the options are added.
func (m *Models) Find(absent func(*Models) (checkpoint.Found, error)) (checkpoint.Found, error) {
	found, err := m.find(absent)
	if err != nil {
		return found, err
	}
	if found, err = m.adapt(found); err != nil {
		return found, &ModelError{err}
	}
	return found, nil
}

func (m *Models) find(absent func(*Models) (checkpoint.Found, error)) (checkpoint.Found, error) {
	if m.options.Model != "" {
		found, err := checkpoint.Resolve(m.options.Model)
		if err != nil {
			return found, &ModelError{err}
		}
		return found, nil
	}
	_, free := m.spare.Memory()
	if best, ok := checkpoint.BestFit(free); ok {
		return best, nil
	}
	return absent(m)
}

// Open opens the files of a model, for work on Backend.
func (m *Models) Open(found checkpoint.Found) (*checkpoint.Checkpoint, error) {
	ckpt, err := found.Open()
	if err != nil {
		return nil, &ModelError{err}
	}
	if err := readWeights(m.ctx, found, ckpt, m.spare, m.settled.Settings,
		m.options.Progress); err != nil {
		return nil, errors.Join(err, ckpt.Close())
	}
	return ckpt, nil
}

// Choose makes source the default model, and opens what the models share.
func (m *Models) Choose(found checkpoint.Found) {
	m.choose(found)
	keep := m.options.Keep
	keep.SwapSpace = m.settled.Keep.SwapSpace
	m.kept = openKept(keep, !m.options.Settings.NoPrefixCaching, m.options.Notify)
}

// Store holds sampled turns and stored responses.
func (m *Models) Store() session.Store { return m.kept.store }

// Ensure loads the default model.
func (m *Models) Ensure(ctx context.Context) error {
	err := m.loaded.ensure(ctx, keyOf(m.first))
	if u, ok := errors.AsType[*unavailable](err); ok {
		return u.error
	}
	return err
}

// unavailable is a load error as a client's request gets it.
type unavailable struct{ error }

func (u *unavailable) Error() string {
	return fmt.Sprintf("%s: %s", session.ErrUnavailable, u.error)
}
func (u *unavailable) Unwrap() []error { return []error{session.ErrUnavailable, u.error} }

// First is the default model.
func (m *Models) First() session.Runner { return &runner{m, m.first} }

// Lines describe the plan of the default model; none while it is not loaded.
func (m *Models) Lines() []string {
	model, ok := m.loaded.now(keyOf(m.first)).model.(*Model)
	if !ok {
		return nil
	}
	if m.upstreams != nil {
		return append([]string{"tokens come from " + strings.Join(m.upstreams.Servers.URLs, ", ")},
			m.kept.lines()...)
	}
	plan, _ := m.Plan()
	lines := plan.Lines()
	if line := model.denseLine(); line != "" {
		lines = append(lines, line)
	}
	return append(lines, m.kept.lines()...)
}

// Plan is the default model's plan with memory used outside the engine; false while it is not
// loaded, or if other servers run it.
func (m *Models) Plan() (Plan, bool) {
	model, ok := m.loaded.now(keyOf(m.first)).model.(*Model)
	if !ok || m.upstreams != nil {
		return Plan{}, false
	}
	if plan := model.Plan(); m.requests.Ceiling > 0 {
		return plan.Beside(m.requests, model.backend, m.kept.hostSpace()), true
	}
	return model.Plan(), true
}

// Drain refuses new turns, waits for the running ones until ctx ends, then ends them. It returns
// how many turns it had to end. Close must follow.
func (m *Models) Drain(ctx context.Context) (cut int, err error) { return m.loaded.drain(ctx) }

// Ready returns why a loaded default model cannot answer, or nil.
func (m *Models) Ready() error {
	model, ok := m.loaded.now(keyOf(m.first)).model.(*Model)
	if !ok || model.servers == nil {
		return nil
	}
	return model.servers.Ready()
}

// Damaged yields a *ModelError if files of a loaded model were truncated, or its upstream servers
// exited. Its turns have failed, and the process should end.
func (m *Models) Damaged() <-chan error { return m.damaged }

// Close ends everything at once. lost says what could not be saved for the next start.
func (m *Models) Close() (err, lost error) {
	err = m.loaded.close()
	if m.spare != nil {
		err = errors.Join(err, m.spare.Close())
		m.spare = nil
	}
	if m.kept != nil {
		lost = m.kept.close()
	}
	return err, lost
}

// loadKey is loadedSet.load. Its error is *unavailable, or wraps errNoRoom.
func (m *Models) loadKey(key string, others []loadedModel) (loadedModel, error) {
	m.mu.Lock()
	found := m.found[key]
	m.mu.Unlock()
	var model *Model
	var err error
	if m.upstreams != nil {
		model, err = m.loadElsewhere(found)
	} else {
		model, err = m.load(found, others)
	}
	if errors.Is(err, errNoRoom) {
		return nil, err
	}
	if err != nil {
		return nil, &unavailable{err}
	}
	m.mu.Lock()
	m.contexts[key] = model.ContextLength()
	m.mu.Unlock()
	m.limit(model, others)
	return model, nil
}

// names are what clients call a model; the first is shown in answers, metrics and lists.
func (m *Models) names(f checkpoint.Found) []string {
	if len(m.options.ServedNames) > 0 && keyOf(f) == keyOf(m.first) {
		return m.options.ServedNames
	}
	e, ok := models.Lookup(f.Name)
	if !ok || e.HF == "" {
		return []string{f.Name}
	}
	aliases := []string{e.HF, strings.Replace(f.Name, "gpt-oss-", "gpt-oss:", 1), e.ID}
	slices.Sort(aliases)
	return append([]string{f.Name}, slices.Compact(aliases)...)
}

// servesOne reports whether only the first model is served.
func (m *Models) alone() bool { return m.upstreams != nil || len(m.options.ServedNames) > 0 }

// all are the first model, those with adapters, and the other cached models of the catalogue.
func (m *Models) all() []checkpoint.Found {
	list := append([]checkpoint.Found{m.first}, m.tunes...)
	if m.alone() {
		return list
	}
	cached, err := checkpoint.Cached()
	if err != nil {
		return list // an unreadable cache adds no models
	}
	for _, f := range cached {
		if f.Complete && keyOf(f) != keyOf(m.first) {
			list = append(list, f)
		}
	}
	return list
}

// List is the default model, then those that a request can switch to.
func (m *Models) List() []session.ModelInfo {
	var list []session.ModelInfo
	for _, st := range m.Status() {
		list = append(list, st.ModelInfo)
	}
	return list
}

// Get finds a model by a client's name for it.
func (m *Models) Get(_ context.Context, name string) (session.Runner, error) {
	same := func(n string) bool { return strings.EqualFold(n, name) }
	if name == "" || slices.ContainsFunc(m.names(m.first), same) {
		return m.First(), nil
	}
	for _, tune := range m.tunes {
		if same(tune.Name) {
			return &runner{m, tune}, nil
		}
	}
	e, ok := models.Lookup(name)
	if !ok || m.alone() {
		return nil, fmt.Errorf("%w %q", session.ErrUnknownModel, name)
	}
	found, err := checkpoint.Resolve(e.ID)
	if err != nil {
		return nil, fmt.Errorf("%w %q: %s", session.ErrUnknownModel, name, err)
	}
	m.mu.Lock()
	m.found[keyOf(found)] = found
	m.mu.Unlock()
	return &runner{m, found}, nil
}

// Stats are the counters of the loaded models, for the metrics.
func (m *Models) Stats() map[string]sched.Stats {
	all := map[string]sched.Stats{}
	for _, st := range m.Status() {
		if st.Model != nil {
			all[st.ID] = st.Model.Stats()
		}
	}
	return all
}

// Status is the current state of one model.
type Status struct {
	session.ModelInfo
	State   State
	Model   *Model    // nil if not loaded
	Unloads time.Time // zero: not planned
}

// Status returns the state of every model in List.
func (m *Models) Status() []Status {
	var list []Status
	for _, f := range m.all() {
		key, tune := m.place(f)
		names, now := m.names(f), m.loaded.now(key)
		model, _ := now.model.(*Model)
		model = model.of(tune)
		if now.state == Ready && model.servers != nil && model.servers.Ready() != nil {
			now.state = Unreachable
		}
		list = append(list, Status{session.ModelInfo{ID: names[0], Aliases: names[1:],
			ContextLength: (&runner{m, f}).ContextLength(), Created: started.Unix()},
			now.state, model, now.until})
	}
	return list
}

// runner is a model, loaded by its first turn.
type runner struct {
	models *Models
	found  checkpoint.Found
}

func (r *runner) ID() string { return r.models.names(r.found)[0] }

// Device is "" while the model is not loaded.
func (r *runner) Device() string {
	key, _ := r.models.place(r.found)
	if model, ok := r.models.loaded.now(key).model.(*Model); ok {
		return model.Device()
	}
	return ""
}

// ContextLength is that of the last load; before the first one the requested one, or the model's
// maximum.
func (r *runner) ContextLength() int {
	r.models.mu.Lock()
	defer r.models.mu.Unlock()
	e, _ := models.Lookup(cmp.Or(r.found.ID, r.found.Name))
	key, _ := r.models.place(r.found)
	return cmp.Or(r.models.contexts[key], r.models.options.Settings.MaxModelLen,
		e.Spec.MaxPosition)
}

func (r *runner) Start(ctx context.Context, q session.Request) (session.Turn, error) {
	key, tune := r.models.place(r.found)
	return r.models.loaded.start(ctx, key, tune, q)
}
