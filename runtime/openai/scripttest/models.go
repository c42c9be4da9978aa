// The scripted model under the names of the published one, for a port.

package scripttest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// Models has one scripted model. Close ends its turns.
type Models struct{ *session.Model }

// names are those in the configurations of clients.
var names = []string{"openai/gpt-oss-20b", "gpt-oss:20b", "20b"}

// Context is the limit of a prompt with its answer, in tokens.
const Context = 131072

// New starts a scripted model whose steps take some time each.
func New(step time.Duration, store records.Store) *Models {
	s := engine.Settings{Pages: 3 * Context / engine.PageTokens, MaxNumBatchedTokens: 8192,
		MaxNumSeqs: 1024, MaxModelLen: Context, KVCacheDtype: "bf16"}
	return &Models{session.New(NewEngine(s, step), session.Options{ID: "gpt-oss-20b",
		Device: "a script", Store: store, Scheduler: sched.Options{Settings: s}})}
}

// List has the model with all its names.
func (m *Models) List() []session.ModelInfo {
	return []session.ModelInfo{{ID: m.ID(), Aliases: names, ContextLength: m.ContextLength(),
		Created: 1754352000}}
}

// Get knows the model by its names, whatever their case.
func (m *Models) Get(_ context.Context, name string) (session.Runner, error) {
	for _, n := range append(names, "", m.ID()) {
		if strings.EqualFold(n, name) {
			return m.Model, nil
		}
	}
	return nil, fmt.Errorf("%w %q", session.ErrUnknownModel, name)
}

// Stats are the scheduler's.
func (m *Models) Stats() map[string]sched.Stats {
	return map[string]sched.Stats{m.ID(): m.Model.Stats()}
}
