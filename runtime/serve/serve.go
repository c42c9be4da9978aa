// Package serve decides which model runs where. One Models is what a verb holds: it finds the
// model, opens the device, plans the memory, loads, keeps models ready, opens anew what failed, and
// closes everything.
//
// What must stay true: a client can name what this machine has already and nothing else, neither a
// folder nor a download; a model is loaded beside another one only where both have a context that
// agents can work with. Only this package opens devices (imports_test.go).
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

// started is when this process began.
var started = time.Now()

// Models are those that this process answers with, safe for concurrent use once Choose returned.
type Models struct {
	ctx     context.Context // ends the loads
	options Options
	settled Settled // for the device that was opened first
	// what a server's requests may take; nothing where there is no server
	requests Requests
	loaded   *loadedSet
	kept     *kept
	first    checkpoint.Found // answers where a client names no model
	// tunes are the first model with an adapter each, which clients know by the adapter's name
	tunes    []checkpoint.Found
	together bool // one engine has the first model and its tunes

	damaged   chan error // see Damaged
	upstreams *Upstreams // nil: models are loaded here

	mu sync.Mutex
	// was opened to look at the machine and waits for the first load
	spare    engine.Backend
	found    map[string]checkpoint.Found // by key
	contexts map[string]int              // context lengths that are known, by key
}

// New opens the backend. ctx ends what is loaded later, too. Choose must follow before any turn.
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

// Settled are the options with what was left open filled in for the device.
func (m *Models) Settled() Settled { return m.settled }

// Backend is the one that was opened, until the first load takes it.
func (m *Models) Backend() engine.Backend { return m.spare }

// OnGPU tells whether that is a GPU.
func (m *Models) OnGPU() bool { return m.spare != nil && onGPU(m.spare) }

// Find finds the model of the options, else the best that is here and fits, else what absent says;
// with the adapters of the options.
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

// Open opens the files of what was found, for work on Backend.
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

// Choose makes found the model that answers by default, and opens what the models share.
func (m *Models) Choose(found checkpoint.Found) {
	m.choose(found)
	keep := m.options.Keep
	keep.SwapSpace = m.settled.Keep.SwapSpace
	m.kept = openKept(keep, !m.options.Settings.NoPrefixCaching, m.options.Notify)
}

// Store has the sampled turns, and has room for stored responses.
func (m *Models) Store() session.Store { return m.kept.store }

// Ensure loads the model that answers by default.
func (m *Models) Ensure(ctx context.Context) error {
	err := m.loaded.ensure(ctx, keyOf(m.first))
	if u, ok := errors.AsType[*unavailable](err); ok {
		return u.error
	}
	return err
}

// unavailable is the error of a load as a client's request gets it.
type unavailable struct{ error }

func (u *unavailable) Error() string {
	return fmt.Sprintf("%s: %s", session.ErrUnavailable, u.error)
}
func (u *unavailable) Unwrap() []error { return []error{session.ErrUnavailable, u.error} }

// First is the model that answers by default.
func (m *Models) First() session.Runner { return &runner{m, m.first} }

// Lines say what was planned for the model that answers by default; none while it is not loaded.
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

// Plan is that of the model that answers by default, and what comes beside it; false while it is
// not loaded, and where other servers have it.
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

// Drain lets no new turn in, waits for the running ones until ctx ends, and ends what is left then.
// It returns how many turns it had to end. Close must follow.
func (m *Models) Drain(ctx context.Context) (cut int, err error) { return m.loaded.drain(ctx) }

// Ready tells why the model that answers by default cannot answer, though it is loaded.
func (m *Models) Ready() error {
	model, ok := m.loaded.now(keyOf(m.first)).model.(*Model)
	if !ok || model.servers == nil {
		return nil
	}
	return model.servers.Ready()
}

// Damaged yields a *ModelError when the files of a loaded model became shorter than they were, or
// the servers behind it ended. Its turns have failed, and the process should end.
func (m *Models) Damaged() <-chan error { return m.damaged }

// Close ends everything at once. lost says what could not be kept for the next start.
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

// loadKey is the set's load. Its error is *unavailable, or wraps errNoRoom.
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

// names are what clients know a model by; the first is shown in answers, metrics and lists.
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

// alone tells that no other model than the first is served.
func (m *Models) alone() bool { return m.upstreams != nil || len(m.options.ServedNames) > 0 }

// all are the first model, those with adapters, and the catalogue's others that are here.
func (m *Models) all() []checkpoint.Found {
	list := append([]checkpoint.Found{m.first}, m.tunes...)
	if m.alone() {
		return list
	}
	cached, err := checkpoint.Cached()
	if err != nil {
		return list // a cache that cannot be read has nothing to offer
	}
	for _, f := range cached {
		if f.Complete && keyOf(f) != keyOf(m.first) {
			list = append(list, f)
		}
	}
	return list
}

// List is the model that is served by default, then those that a request can switch to.
func (m *Models) List() []session.ModelInfo {
	var list []session.ModelInfo
	for _, st := range m.Status() {
		list = append(list, st.ModelInfo)
	}
	return list
}

// Get finds a model by what a client calls it.
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

// Status is one model as it is now.
type Status struct {
	session.ModelInfo
	State   State
	Model   *Model    // nil where it is not loaded
	Unloads time.Time // zero: not planned
}

// Status is what List lists, with what is loaded of it.
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

// runner is a model that is loaded for the first turn that asks for it.
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

// ContextLength is that of the last load; before the first one it is what was asked for, or what
// the model was made for.
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
