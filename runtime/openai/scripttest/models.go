// The scripted model under the names of the published one, for a port.

package scripttest

import (
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// Context is the limit of a prompt with its answer, in tokens.
const Context = 131072

// New starts a scripted model whose steps take some time each.
func New(step time.Duration, store records.Store) *session.Model {
	s := engine.Settings{Pages: 3 * Context / engine.PageTokens, MaxNumBatchedTokens: 8192,
		MaxNumSeqs: 1024, MaxModelLen: Context, KVCacheDtype: "bf16"}
	return session.New(NewEngine(s, step), session.Options{ID: "gpt-oss-20b",
		Device: "a script", Store: store, Scheduler: sched.Options{Settings: s}})
}

// Models has m, under the names in the configurations of clients.
func Models(m *session.Model) session.Models {
	return sessiontest.Single(m, m.Stats, "openai/gpt-oss-20b", "gpt-oss:20b", "20b")
}
