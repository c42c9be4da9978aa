// The header automaton: every legal header of one request, as a graph over bytes and special
// tokens.
//
//	<|channel|> CHANNEL [ to=RECIPIENT] [ CONTENT TYPE] <|message|>
//	 to=RECIPIENT<|channel|> CHANNEL [CONTENT TYPE] <|message|>
//
// What must stay true: only offered recipients can be spelled; every node leads to an end; the
// graph is deterministic. Functions are called on commentary, the built-in tools on analysis or
// commentary, as in the models' training. A table is made once for a set of tools and shared by all
// turns; its masks are made on first use.

package grammar

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// The channels.
const (
	Analysis   = "analysis"
	Commentary = "commentary"
	Final      = "final"
)

// toolKind decides a tool's channels and content types.
type toolKind uint8

const (
	functionTool toolKind = iota // commentary, JSON
	browserTool                  // analysis or commentary, JSON or "code", as models write
	pythonTool                   // analysis or commentary, code
	textTool                     // commentary, without a content type
)

// recipient is one tool that may be called.
type recipient struct {
	name string
	kind toolKind
}

func (r recipient) channels() []string {
	if r.kind == functionTool || r.kind == textTool {
		return []string{Commentary}
	}
	return []string{Analysis, Commentary}
}

// headerRules are the kinds of messages that may begin.
type headerRules struct {
	analysis, commentary, final bool
	calls                       bool
	// calls only in the form <|channel|>commentary to=NAME <|constrain|>json<|message|>
	oneForm bool
}

// headerNode is a position in a header. A node without edges is the end: the channel is known and
// the body begins.
type headerNode struct {
	edges   []automaton.Edge
	tool    int32  // a recipient's name ends here, else -1
	channel string // of the end
	mask    atomic.Pointer[[]uint64]
}

// headerTable is the graph; a header begins at node 0.
type headerTable struct{ nodes []*headerNode }

func (h *headerTable) add() int32 {
	h.nodes = append(h.nodes, &headerNode{tool: -1})
	return int32(len(h.nodes) - 1)
}

// step follows a byte or a special token, -1 if there is no such edge.
func (h *headerTable) step(from, label int32) int32 {
	for _, e := range h.nodes[from].edges {
		if e.Label == label {
			return e.To
		}
	}
	return -1
}

// mark adds the edge over a byte or a special token and returns its target.
func (h *headerTable) mark(from, label int32) int32 {
	to := h.step(from, label)
	if to < 0 {
		to = h.add()
		h.nodes[from].edges = append(h.nodes[from].edges, automaton.Edge{Label: label, To: to})
	}
	return to
}

// text adds the edges that spell s from a node and returns the last node.
func (h *headerTable) text(from int32, s string) int32 {
	for i := range len(s) {
		from = h.mark(from, int32(s[i]))
	}
	return from
}

func (h *headerTable) end(from int32, channel string) {
	h.nodes[h.mark(from, token.Message)].channel = channel
}

// contentType adds what may follow the recipient, or the channel after it, up to the body.
func (h *headerTable) contentType(from int32, kind toolKind, channel string, oneForm bool) {
	if kind == textTool {
		h.end(from, channel)
		return
	}
	if kind != functionTool {
		h.end(h.text(from, " code"), channel)
	}
	if kind != pythonTool {
		h.end(h.text(h.mark(h.text(from, " "), token.Constrain), "json"), channel)
	}
	if oneForm {
		return
	}
	h.end(from, channel)
	if kind != pythonTool {
		h.end(h.text(h.mark(from, token.Constrain), "json"), channel)
	}
}

// newHeaderTable makes the graph. Names must have passed checkName.
func newHeaderTable(tools []recipient, r headerRules) *headerTable {
	h := &headerTable{}
	root := h.add()
	channel := h.mark(root, token.Channel)
	if r.analysis {
		h.end(h.text(channel, Analysis), Analysis)
	}
	if r.commentary {
		h.end(h.text(channel, Commentary), Commentary)
	}
	if r.final {
		h.end(h.text(channel, Final), Final)
	}
	if !r.calls {
		return h
	}
	for i, tool := range tools {
		for _, c := range tool.channels() {
			if r.oneForm && c != Commentary {
				continue
			}
			leaf := h.text(channel, c+" to="+tool.name)
			h.nodes[leaf].tool = int32(i)
			h.contentType(leaf, tool.kind, c, r.oneForm)
		}
		if r.oneForm {
			continue
		}
		leaf := h.text(root, " to="+tool.name)
		h.nodes[leaf].tool = int32(i)
		for _, c := range tool.channels() {
			h.contentType(h.text(h.mark(leaf, token.Channel), c), tool.kind, c, false)
		}
	}
	return h
}

func (h *headerTable) maskAt(node int32) []uint64 {
	n := h.nodes[node]
	if m := n.mask.Load(); m != nil {
		return *m
	}
	mask := automaton.NewMask()
	spelled := false
	for _, e := range n.edges {
		if e.Special() {
			automaton.Allow(mask, e.Label)
		} else {
			spelled = true
		}
	}
	if spelled {
		automaton.AllowSpelled(mask, node,
			func(node int32) []automaton.Edge { return h.nodes[node].edges })
	}
	n.mask.Store(&mask)
	return mask
}

// forced returns the tokens from a node to the first choice; nil if there is a choice at once. If
// text may continue there, the last token before the choice is omitted: it may be part of a longer
// one.
func (h *headerTable) forced(node int32) []int32 {
	var ids []int32
	var text []byte
	for {
		edges := h.nodes[node].edges
		if len(edges) == 1 {
			e := edges[0]
			if node = e.To; e.Special() {
				ids = append(token.Get().EncodeBytes(ids, text), e.Label)
				text = text[:0]
			} else {
				text = append(text, byte(e.Label))
			}
			continue
		}
		if len(text) > 0 {
			spelled := token.Get().EncodeBytes(nil, text)
			if slices.ContainsFunc(edges, func(e automaton.Edge) bool { return !e.Special() }) {
				spelled = spelled[:len(spelled)-1]
			}
			ids = append(ids, spelled...)
		}
		return ids
	}
}

func checkName(name string) error {
	if name == "" {
		return fmt.Errorf("a tool has no name")
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c == '<' || c == '=' || c >= 0x7f {
			return fmt.Errorf("the tool name %q holds a character that a message header cannot "+
				"carry", name)
		}
	}
	return nil
}

// maxHeaderTables is the number of tool sets with a cached table.
const maxHeaderTables = 256

// headerTables caches the tables of the most recent tool sets.
var headerTables = automaton.Cache[string, *headerTable]{Most: maxHeaderTables}

// tableFor returns the possibly cached table for tools and rules.
func tableFor(tools []recipient, r headerRules) *headerTable {
	key := fmt.Sprint(r)
	if r.calls {
		key = fmt.Sprint(r, tools)
	}
	h, _ := headerTables.Get(key, func() (*headerTable, error) {
		return newHeaderTable(tools, r), nil
	})
	return h
}
