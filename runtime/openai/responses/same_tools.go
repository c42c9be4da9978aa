// The tools of a conversation, for a request that continues it without any: Codex's compaction. The
// tools are described before the messages, so without them none of the prompt would be cached.
//
// What must stay true: only the same client gets the tools again, for the same prompt_cache_key and
// the same messages, and then no tool can be called.

package responses

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/session"
)

// maxOffers bounds the conversations whose tools are remembered, maxOfferMessages their length, and
// maxOfferBytes the size of one.
const maxOffers, maxOfferMessages, maxOfferBytes = 64, 4096, 512 << 10

// offers has the tools of the latest conversations. It is safe for concurrent use.
type offers struct {
	mu   sync.Mutex
	list []*lastOffer // the oldest first
}

// lastOffer is the latest request of a conversation that had tools.
type lastOffer struct {
	client, key string
	messages    []uint64        // hashes
	request     session.Request // its tools and instructions only
}

var messageSeed = maphash.MakeSeed()

func hashesOf(messages []session.Message) (list []uint64) {
	for _, m := range messages {
		list = append(list, maphash.Comparable(messageSeed, [...]string{string(m.Role), m.Name,
			m.Recipient, m.Channel, m.CallID, m.Text()}))
	}
	return list
}

// apply describes the conversation's tools to a request without any, or remembers those it has.
func (o *offers) apply(client, key string, r *session.Request, builtins []tools.Requested) {
	if key == "" || len(r.Messages) > maxOfferMessages || slices.ContainsFunc(builtins,
		func(b tools.Requested) bool { return b.Kind == tools.MCP }) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.list, func(l *lastOffer) bool {
		return l.client == client && l.key == key
	})
	messages := hashesOf(r.Messages)
	if len(r.Functions)+len(builtins) == 0 {
		if i >= 0 && r.ToolChoice == grammar.Auto && o.list[i].leadsTo(r, messages) {
			last := o.list[i].request
			r.Functions, r.Strict, r.Texts = last.Functions, last.Strict, last.Texts
			r.Browser, r.Python, r.ToolChoice = last.Browser, last.Python, grammar.None
		}
		return
	}
	if i >= 0 {
		o.list = slices.Delete(o.list, i, i+1)
	}
	functions, size := slices.Clone(r.Functions), len(key)+len(r.Instructions)
	for i := range functions {
		f := &functions[i]
		f.Parameters = slices.Clone(f.Parameters) // else the whole body stays in memory
		size += len(f.Parameters) + len(f.Description)
	}
	if size > maxOfferBytes {
		return
	}
	if len(o.list) == maxOffers {
		o.list = slices.Delete(o.list, 0, 1)
	}
	last := &lastOffer{client: client, key: key, messages: messages,
		request: session.Request{Instructions: r.Instructions, Functions: functions,
			Strict: r.Strict, Texts: r.Texts}}
	for _, b := range builtins {
		last.request.Browser = last.request.Browser || b.Kind == tools.Browser
		last.request.Python = last.request.Python || b.Kind == tools.Python
	}
	o.list = append(o.list, last)
}

// leadsTo tells whether a request continues the conversation.
func (l *lastOffer) leadsTo(r *session.Request, messages []uint64) bool {
	n := len(l.messages)
	return l.request.Instructions == r.Instructions && n > 0 && n <= len(messages) &&
		slices.Equal(l.messages, messages[:n])
}
