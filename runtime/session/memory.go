// The memory of what the model sampled.
//
// Clients send a conversation back as text, and most of them drop the reasoning on the way. Rendered again, such a
// history has other tokens than the ones the model saw, so its answers get worse and no cached prefix fits. Memory
// keeps the very tokens: of a turn that ended in a call under the call's id, of an answer under a hash of its text.
//
// What must stay true: a remembered piece is used only where it says what the client says (same arguments, same
// answer, same words before them), so a client that edits its history gets its own words rendered.

package session

import (
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/session/journal"
)

// segment is one message of the assistant as it was sampled.
type segment struct {
	reasoning bool    // analysis without a recipient: left out once the turn has its final
	tokens    []int32 // from after <|start|>assistant to the ender, which is included
}

// remembered is one assistant run: the messages between two messages of others.
type remembered struct {
	key       string
	segments  []segment
	arguments string // of the call that ended it, "" for an answer
	tokens    int
	at        time.Time
}

// Memory is bounded by tokens and by age and is safe for concurrent use.
type Memory struct {
	mu        sync.Mutex
	maxTokens int
	ttl       time.Duration
	now       func() time.Time
	tokens    int
	order     *list.List // of *remembered, most recently used in front
	byKey     map[string]*list.Element
	log       *journal.Journal // nil: in memory alone
}

const rememberedTokens = 4 << 20 // 16 MiB of ids

// RememberedFor is how long sampled turns are kept after they were last used, where nothing else is said.
const RememberedFor = 24 * time.Hour

// NewMemory keeps at most maxTokens tokens (0: four million), none longer than ttl after it was last used.
func NewMemory(maxTokens int, ttl time.Duration) *Memory {
	if maxTokens == 0 {
		maxTokens = rememberedTokens
	}
	return &Memory{maxTokens: maxTokens, ttl: ttl, now: time.Now, order: list.New(), byKey: map[string]*list.Element{}}
}

func answerKey(text string) string {
	h := sha256.Sum256([]byte(text))
	return "answer:" + string(h[:])
}

func callKey(id string) string { return "call:" + id }

// put remembers r, on disk too where there is a log. A disk that refuses costs what outlives the process, nothing else.
func (m *Memory) put(r *remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.at = m.now()
	if m.add(r) && m.log != nil {
		m.log.Append(r.record(), m.records)
	}
}

// add takes r in and drops what is too much or too old. m.mu is held.
func (m *Memory) add(r *remembered) bool {
	r.tokens = 0
	for _, s := range r.segments {
		r.tokens += len(s.tokens)
	}
	if r.tokens > m.maxTokens {
		return false
	}
	if e, ok := m.byKey[r.key]; ok {
		m.drop(e)
	}
	m.byKey[r.key] = m.order.PushFront(r)
	m.tokens += r.tokens
	for m.tokens > m.maxTokens {
		m.drop(m.order.Back())
	}
	for e := m.order.Back(); e != nil && m.now().Sub(e.Value.(*remembered).at) > m.ttl; e = m.order.Back() {
		m.drop(e)
	}
	return true
}

func (m *Memory) get(key string) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byKey[key]
	if !ok {
		return nil
	}
	r := e.Value.(*remembered)
	if m.now().Sub(r.at) > m.ttl {
		m.drop(e)
		return nil
	}
	r.at = m.now()
	m.order.MoveToFront(e)
	return r
}

func (m *Memory) drop(e *list.Element) {
	r := m.order.Remove(e).(*remembered)
	delete(m.byKey, r.key)
	m.tokens -= r.tokens
}

// sameArguments tells whether two argument texts say the same: equal as JSON, else equal but for white space around.
func sameArguments(a, b string) bool {
	if strings.TrimSpace(a) == strings.TrimSpace(b) {
		return true
	}
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

// saysTheSame tells whether the texts for the user that r holds are those of the run, in order. A run that holds nothing
// but its last message is taken as one whose client leaves such texts away, if the last message was a call: its id says
// whose it is.
func saysTheSame(r *remembered, run []Message) bool {
	var said []string
	for _, m := range run {
		if !isReasoning(m) && m.Recipient == "" {
			said = append(said, m.Text())
		}
	}
	if r.arguments != "" && len(said) == 0 {
		return true
	}
	var kept []string
	for _, s := range r.segments {
		if text, shown := s.shown(); shown {
			kept = append(kept, text)
		}
	}
	return slices.Equal(kept, said)
}

// shown is the text of a segment that is for the user; false for reasoning and calls.
func (s segment) shown() (text string, ok bool) {
	body := slices.Index(s.tokens, token.Message)
	if s.reasoning || body < 0 || len(s.tokens) == 0 || s.tokens[len(s.tokens)-1] == token.Call {
		return "", false
	}
	if strings.Contains(string(token.Get().Decode(nil, s.tokens[:body])), " to=") {
		return "", false
	}
	return string(token.Get().Decode(nil, s.tokens[body+1:len(s.tokens)-1])), true
}
