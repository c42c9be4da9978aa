// The driver: the models, the limits and the state that all requests share.

package answer

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/quota"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
)

type Options struct {
	Models  session.Models
	Log     *slog.Logger // nil: no log
	MaxBody int64        // bytes; 0: 16 MiB
	// MaxBodies bounds the bodies of all unanswered requests together, in bytes; 0: room for
	// MaxWaiting of the largest.
	MaxBodies int64
	// MaxWaiting bounds the requests that are read and checked at once; 0: 2048.
	MaxWaiting int
	// MaxNumSeqs is how many requests the engine runs at once, for batches; 0: 64.
	MaxNumSeqs int
	// Silence is how long a stream may be silent before a heartbeat is sent; 0: DefaultSilence.
	Silence time.Duration
	// Interval is the tokens of an event; 0: one, and more while many streams are open.
	Interval int
	// MaxReasoning is session.Request.MaxReasoning for requests without max_reasoning_tokens.
	MaxReasoning int
	// ReasoningContent names the reasoning of chat completions reasoning_content, as older vLLM and
	// DeepSeek do, instead of reasoning.
	ReasoningContent bool
	// AllowLoops is session.Request.AllowLoops of all requests.
	AllowLoops bool
	// Store has the stored responses. The caller closes it. nil: a new one in memory.
	Store records.Store
	// ForgetPages removes cached pages of a deleted record from the disk; nil: there are none.
	ForgetPages func([]kv.Hash) error
	// Keys are the named keys; nil: none.
	Keys *keys.Ring
	// IgnoreImages replaces a message of images only with a note to the model.
	IgnoreImages bool
	// LogPrompts logs the bodies of requests.
	LogPrompts bool
}

type Driver struct {
	Options
	Count     counter // counters for metrics; set before the first request
	pace      *pace
	gate      session.Gate  // for bodies that are read
	preparing *quota.Shared // requests whose turns have not started
	bodies    *quota.Shared // bytes
}

type counter interface {
	Finished(model string, d session.Done)
	// Streamed counts a stream's events and the writes that sent them.
	Streamed(model string, events, writes int)
}

// DefaultSilence is shorter in tests only. Agents give up after 300 s.
var DefaultSilence = 15 * time.Second

func New(o Options) *Driver {
	o.Silence, o.MaxBody = cmp.Or(o.Silence, DefaultSilence), cmp.Or(o.MaxBody, StandardBody)
	o.MaxWaiting, o.MaxNumSeqs = cmp.Or(o.MaxWaiting, 2048), cmp.Or(o.MaxNumSeqs, 64)
	o.MaxBodies = cmp.Or(o.MaxBodies, o.MaxBody*int64(o.MaxWaiting))
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Store == nil {
		o.Store = records.NewStore()
	}
	return &Driver{Options: o, pace: &pace{tokens: o.Interval}, gate: session.NewGate(),
		preparing: quota.New("requests that are read", int64(o.MaxWaiting)),
		bodies:    quota.New("bodies", o.MaxBodies-o.MaxBodies/8)}
}

// Preparing counts the requests that are read and checked, and have no turn yet.
func (d *Driver) Preparing() int64 { return d.preparing.Total() }

// Handler answers a request: with the body of a 200, with a fault, or by itself if both are nil.
type Handler func(e *Exchange, r *http.Request) (any, *fields.Fault)

// BodyHandler is the handler of a route whose body is an object.
func (d *Driver) BodyHandler(do func(*Exchange, *http.Request, *fields.Object) (any,
	*fields.Fault)) Handler {
	return func(e *Exchange, r *http.Request) (any, *fields.Fault) {
		o, f := d.readBody(e, r)
		if f != nil {
			return nil, f
		}
		return do(e, r, o)
	}
}

// NewID makes a unique id. Its first half is the time, so that later ids of a prefix are greater;
// the other half is random.
func NewID(prefix string) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(time.Now().UnixNano()))
	_, _ = rand.Read(b[8:]) // never fails, by its documentation
	return prefix + hex.EncodeToString(b[:])
}

// URL is the address of a path for the client of a request, whose proxy may encrypt.
func URL(r *http.Request, path string) string {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https://" + r.Host + path
	}
	return "http://" + r.Host + path
}

// ModelObject is a model as OpenAI's API lists it.
type ModelObject struct {
	ID          string   `json:"id"`
	Object      string   `json:"object"` // model
	Created     int64    `json:"created"`
	OwnedBy     string   `json:"owned_by"`
	MaxModelLen int      `json:"max_model_len"`  // vLLM's name for the context length
	Context     int      `json:"context_length"` // OpenRouter's
	Aliases     []string `json:"aliases"`        // the model's other names
}

func NewModelObject(name string, names []string, context int, created int64) ModelObject {
	aliases := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
	return ModelObject{ID: name, Object: "model", Created: created, OwnedBy: "ossrun",
		MaxModelLen: context, Context: context, Aliases: aliases}
}

// AllModels lists every name of every model that the client may use.
func (d *Driver) AllModels(e *Exchange) []ModelObject {
	list := []ModelObject{}
	for _, m := range d.Models.List() {
		names := append([]string{m.ID}, m.Aliases...)
		if !e.Key.MayUseModel(names...) {
			continue
		}
		for _, name := range names {
			list = append(list, NewModelObject(name, names, m.ContextLength, m.Created))
		}
	}
	return list
}

// FindModel returns a model that the client may use; "" is the first such model, and so is a model
// of another vendor that is not here. Agents use such names by default, for titles and the like,
// and users cannot always change them.
func (d *Driver) FindModel(ctx context.Context, e *Exchange, name string) (session.Runner, error) {
	runner, err := d.findAllowed(ctx, e, name)
	if errors.Is(err, session.ErrUnknownModel) && (strings.HasPrefix(name, "claude-") ||
		strings.HasPrefix(name, "gpt-") && !strings.HasPrefix(name, "gpt-oss")) {
		return d.findAllowed(ctx, e, "")
	}
	return runner, err
}

func (d *Driver) findAllowed(ctx context.Context, e *Exchange, name string) (session.Runner,
	error) {
	if e.Key == nil {
		return d.find(ctx, name)
	}
	if name == "" {
		for _, m := range d.AllModels(e) {
			return d.Models.Get(ctx, m.ID)
		}
	}
	if !d.mayUse(e, name) {
		return nil, notForKey(name)
	}
	runner, err := d.find(ctx, name)
	if err == nil && !d.mayUse(e, runner.ID()) { // the list did not have this name
		err = notForKey(name)
	}
	return runner, err
}

// find is Models.Get, for Ollama's forms of a name too.
func (d *Driver) find(ctx context.Context, name string) (session.Runner, error) {
	runner, err := d.Models.Get(ctx, name)
	if short := models.ShortName(name); short != name && errors.Is(err, session.ErrUnknownModel) {
		if runner, err := d.Models.Get(ctx, short); err == nil {
			return runner, nil
		}
	}
	return runner, err
}

func notForKey(name string) error {
	return fields.Refusal(http.StatusNotFound, "model", "model_not_found", "there is no model "+
		fields.Brief(name)+" for this key; GET /v1/models lists those that it may use")
}

// mayUse tells whether the client may use a model under a name that the list may not have.
func (d *Driver) mayUse(e *Exchange, name string) bool {
	for _, m := range d.Models.List() {
		names := append([]string{m.ID}, m.Aliases...)
		for _, n := range names {
			if strings.EqualFold(n, name) {
				return e.Key.MayUseModel(names...)
			}
		}
	}
	return true
}
