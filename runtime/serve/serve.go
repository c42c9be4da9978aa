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
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

var started = time.Now()

// Models are the models of this process, safe for concurrent use once Choose returned.
type Models struct {
	ctx       context.Context // cancels loads
	cancel    context.CancelFunc
	options   Options
	effective EffectiveOptions // for the device opened first
	// memory plan of a server's requests; zero without a server
	requests Requests
	loaded   *loadedSet
	shared   *sharedState
	first    checkpoint.Model // the default for requests without a model
	// adapters are the first model with an adapter each, served under the adapter's name
	adapters  []checkpoint.Model
	oneEngine bool // first and adapters share one engine

	damaged   chan error // see Damaged
	upstreams []Upstream // none: models are loaded by this process

	mu sync.Mutex
	// spare is the backend opened by New for the first load
	spare    engine.Backend
	sources  map[string]checkpoint.Model // by key
	contexts map[string]int              // known context lengths, by key
}

// New opens the backend. ctx also ends later loads. Choose must follow before any turn.
func New(ctx context.Context, o Options) (*Models, error) {
	o.Settings.DenseCache = cmp.Or(o.Settings.DenseCache, DenseFolder())
	m := newModels(ctx, o)
	var err error
	if m.spare, err = m.openBackend(); err != nil {
		return nil, err
	}
	m.effective = effectiveFor(m.spare, o)
	if o.MaxBody > 0 {
		m.requests, err = PlanRequests(m.effective.Settings, o.MaxBody)
		if m.requests.Tools = o.ToolMemory; err != nil {
			return nil, errors.Join(err, m.spare.Close())
		}
	}
	return m, nil
}

func newModels(ctx context.Context, o Options) *Models {
	if o.NotifyBackground == nil {
		o.NotifyBackground = o.Notify
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &Models{ctx: ctx, cancel: cancel, options: o, sources: map[string]checkpoint.Model{},
		contexts: map[string]int{}, damaged: make(chan error, 1)}
	m.loaded = newLoadedSet(m.loadKey, o.KeepAlive)
	return m
}

func (m *Models) Effective() EffectiveOptions { return m.effective }

// Backend is the backend opened by New, until the first load takes it.
func (m *Models) Backend() engine.Backend { return m.spare }

// OnGPU reports whether Backend is a GPU.
func (m *Models) OnGPU() bool { return m.spare != nil && onGPU(m.spare) }

// Find finds the model of the options, else the best cached one that fits, else calls absent. The
// adapters of the options are added.
func (m *Models) Find(absent func(*Models) (checkpoint.Model, error)) (checkpoint.Model, error) {
	source, err := m.find(absent)
	if err != nil {
		return source, err
	}
	if source, err = m.adapt(source); err != nil {
		return source, &ModelError{err}
	}
	return source, nil
}

func (m *Models) find(absent func(*Models) (checkpoint.Model, error)) (checkpoint.Model, error) {
	if m.options.Model != "" {
		if m.options.Fetch != nil {
			if err := m.options.Fetch(m.ctx, m.options.Model); err != nil {
				return checkpoint.Model{}, err
			}
		}
		source, err := checkpoint.Resolve(m.options.Model)
		if err != nil {
			return source, &ModelError{err}
		}
		return source, nil
	}
	_, free := m.spare.Memory()
	if best, ok := checkpoint.BestFit(free); ok {
		return best, nil
	}
	return absent(m)
}

// Open opens the files of a model, for work on Backend.
func (m *Models) Open(source checkpoint.Model) (*checkpoint.Checkpoint, error) {
	ckpt, err := source.Open()
	if err != nil {
		return nil, &ModelError{err}
	}
	if err := readWeights(m.ctx, source, ckpt, m.spare, m.effective.Settings,
		m.options.Progress); err != nil {
		return nil, errors.Join(err, ckpt.Close())
	}
	return ckpt, nil
}

// Choose makes source the default model, with its adapters in one engine if the device can, and
// opens what the models share.
func (m *Models) Choose(source checkpoint.Model) {
	m.first, m.sources[keyOf(source)] = source, source
	m.oneEngine = m.spare != nil && m.spare.Caps().Adapters && len(m.adapters) > 0
	if !m.oneEngine {
		for _, adapter := range m.adapters {
			m.sources[keyOf(adapter)] = adapter
		}
		m.loaded.maxLoaded = maxLoadedModels + len(m.adapters)
	}
	keep := m.options.Keep
	keep.SwapSpace = m.effective.Keep.SwapSpace
	m.shared = openShared(keep, !m.options.Settings.NoPrefixCaching, m.options.Notify)
}

// Store holds sampled turns and stored responses.
func (m *Models) Store() records.Store { return m.shared.store }

// ForgetPages removes cached pages of a deleted record from the disk.
func (m *Models) ForgetPages(names []kv.Hash) error { return m.shared.forget(names) }

// Ensure loads the default model, or the first of the upstream models that answers.
func (m *Models) Ensure(ctx context.Context) error {
	if len(m.upstreams) > 0 {
		return loadError(m.ensureUpstreams(ctx))
	}
	return loadError(m.loaded.ensure(ctx, keyOf(m.first)))
}

func loadError(err error) error {
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

func (m *Models) First() session.Runner { return &runner{m, m.first} }

// Lines describe the plan of the default model; none while it is not loaded.
func (m *Models) Lines() []string {
	var lines []string
	for _, u := range m.upstreams {
		what := "tokens"
		if len(m.upstreams) > 1 {
			what += " of " + m.names(u.source)[0]
		}
		lines = append(lines, what+" come from "+strings.Join(u.Servers.URLs, ", "))
	}
	if lines != nil {
		return append(lines, m.shared.lines()...)
	}
	model, ok := m.loaded.stateOf(keyOf(m.first)).model.(*Model)
	if !ok {
		return nil
	}
	plan, _ := m.Plan()
	lines = plan.Lines()
	if line := model.denseLine(); line != "" {
		lines = append(lines, line)
	}
	return append(lines, m.shared.lines()...)
}

// Plan is the default model's plan with memory used outside the engine; false while it is not
// loaded, or if other servers run it.
func (m *Models) Plan() (Plan, bool) {
	model, ok := m.loaded.stateOf(keyOf(m.first)).model.(*Model)
	if !ok || len(m.upstreams) > 0 {
		return Plan{}, false
	}
	if plan := model.Plan(); m.requests.Ceiling > 0 {
		return plan.WithRequests(m.requests, model.backend, m.shared.hostSpace()), true
	}
	return model.Plan(), true
}

// Drain refuses new turns, waits for the running ones until ctx ends, then ends them. It returns
// how many turns it had to end. Close must follow.
func (m *Models) Drain(ctx context.Context) (cut int, err error) { return m.loaded.drain(ctx) }

// Ready is nil if a model can answer; upstream servers may be down.
func (m *Models) Ready() (err error) {
	for _, u := range m.upstreams {
		model, ok := m.loaded.stateOf(keyOf(u.source)).model.(*Model)
		if !ok {
			continue
		}
		if err = model.servers.Ready(); err == nil {
			return nil
		}
	}
	return err
}

// Damaged yields a *ModelError if files of a loaded model were truncated, or its upstream servers
// exited. Its turns have failed, and the process should end.
func (m *Models) Damaged() <-chan error { return m.damaged }

// Close ends everything at once. lost says what could not be saved for the next start.
func (m *Models) Close() (err, lost error) {
	m.cancel()
	err = m.loaded.close()
	if m.spare != nil {
		err = errors.Join(err, m.spare.Close())
		m.spare = nil
	}
	if m.shared != nil {
		lost = m.shared.close()
	}
	return err, lost
}

// loadKey is loadedSet.load. Its error is *unavailable, or wraps errNoRoom.
func (m *Models) loadKey(key string, loaded []loadedModel) (loadedModel, error) {
	m.mu.Lock()
	source := m.sources[key]
	m.mu.Unlock()
	model, err := m.load(source, loaded)
	if errors.Is(err, errNoRoom) {
		return nil, err
	}
	if err != nil {
		return nil, &unavailable{err}
	}
	m.mu.Lock()
	m.contexts[key] = model.ContextLength()
	m.mu.Unlock()
	m.setMemoryLimit(model, loaded)
	return model, nil
}

// names are what clients call a model; the first is shown in answers, metrics and lists.
func (m *Models) names(f checkpoint.Model) []string {
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

// all are the first model, those with adapters or other upstream servers, and the other cached
// models of the catalogue.
func (m *Models) all() []checkpoint.Model {
	list := append([]checkpoint.Model{m.first}, m.adapters...)
	for i := 1; i < len(m.upstreams); i++ {
		list = append(list, m.upstreams[i].source)
	}
	if len(m.upstreams) > 0 || len(m.options.ServedNames) > 0 {
		return list
	}
	cached, err := checkpoint.Cached()
	if err != nil {
		return list // an unreadable cache adds no models
	}
	return append(list, slices.DeleteFunc(cached, func(f checkpoint.Model) bool {
		return !f.Complete || keyOf(f) == keyOf(m.first)
	})...)
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
	for _, adapter := range m.adapters {
		if same(adapter.Name) {
			return &runner{m, adapter}, nil
		}
	}
	e, ok := models.Lookup(name)
	for _, u := range m.upstreams {
		if len(m.options.ServedNames) == 0 && (ok && u.source.ID == e.ID || same(u.source.Name)) {
			return &runner{m, u.source}, nil
		}
	}
	if !ok || len(m.upstreams) > 0 || len(m.options.ServedNames) > 0 {
		return nil, fmt.Errorf("%w %q", session.ErrUnknownModel, name)
	}
	return m.Add(e.ID)
}

// Add returns another model of this machine, which may be a folder. Clients have no use of it: they
// name no files.
func (m *Models) Add(name string) (session.Runner, error) {
	source, err := checkpoint.Resolve(name)
	if err != nil {
		return nil, fmt.Errorf("%w %q: %s", session.ErrUnknownModel, name, err)
	}
	m.mu.Lock()
	m.sources[keyOf(source)] = source
	m.mu.Unlock()
	return &runner{m, source}, nil
}

func (m *Models) Stats() map[string]sched.Stats {
	all := map[string]sched.Stats{}
	for _, st := range m.Status() {
		if st.Model != nil {
			all[st.ID] = st.Model.Stats()
		}
	}
	return all
}

type Status struct {
	session.ModelInfo
	State   State
	Model   *Model    // nil if not loaded
	Unloads time.Time // zero: not planned
	Source  string    // checkpoint.Model.Source
}

// Status returns the state of every model in List.
func (m *Models) Status() []Status {
	var list []Status
	for _, f := range m.all() {
		key, adapter := m.locate(f)
		names, now := m.names(f), m.loaded.stateOf(key)
		model, _ := now.model.(*Model)
		model = model.adapterModel(adapter)
		if now.state == Ready && model.servers != nil && model.servers.Ready() != nil {
			now.state = Unreachable
		}
		list = append(list, Status{session.ModelInfo{ID: names[0], Aliases: names[1:],
			ContextLength: (&runner{m, f}).ContextLength(), Created: started.Unix()},
			now.state, model, now.until, f.Source()})
	}
	return list
}

// runner is a model, loaded by its first turn.
type runner struct {
	models *Models
	source checkpoint.Model
}

func (r *runner) ID() string { return r.models.names(r.source)[0] }

// Source is what opens the model again, if its ID does not.
func (r *runner) Source() string { return r.source.Source() }

// Device is "" while the model is not loaded.
func (r *runner) Device() string {
	key, _ := r.models.locate(r.source)
	if model, ok := r.models.loaded.stateOf(key).model.(*Model); ok {
		return model.Device()
	}
	return ""
}

// ContextLength is that of the last load; before the first one the requested one, or the model's
// maximum.
func (r *runner) ContextLength() int {
	r.models.mu.Lock()
	defer r.models.mu.Unlock()
	e, _ := models.Lookup(cmp.Or(r.source.ID, r.source.Name))
	key, _ := r.models.locate(r.source)
	return cmp.Or(r.models.contexts[key], r.models.options.Settings.MaxModelLen,
		e.Spec.MaxPosition)
}

func (r *runner) Start(ctx context.Context, q session.Request) (session.Turn, error) {
	key, adapter := r.models.locate(r.source)
	return r.models.loaded.start(ctx, key, adapter, q)
}
