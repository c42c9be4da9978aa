// A Turn is the automaton of the assistant's complete answer to one request, from after
// <|start|>assistant to the token that ends the turn.
//
//	header --<|message|>--> body --<|end|>--> <|start|> assistant --> header ...
//	                        body --<|return|>, <|call|>--> over
//
// What must stay true: every sequence of allowed tokens is legal Harmony for OpenAI's strict
// parser. A turn only ends in a non-empty answer or a call of an offered tool. A body with a
// grammar only ends where the grammar may.

package grammar

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
)

// ToolChoice decides whether tools may, must or must not be called.
type ToolChoice uint8

const (
	Auto     ToolChoice = iota // the model decides
	None                       // no tool can be called
	Required                   // some tool is called, after reasoning if the model wants it
	// the function TurnRules.Name is called, optionally after reasoning
	Named
)

// FunctionRule is one function offered as functions.NAME. If Body is nil, arguments are any JSON
// object or, with Text, any text.
type FunctionRule struct {
	Name string
	Body *Grammar
	Text bool // its arguments are not JSON
}

// TurnRules are the constraints of a turn.
type TurnRules struct {
	Functions       []FunctionRule
	Python, Browser bool   // the built-in tools are offered
	BrowserOnly     string // the one function of the browser: search, open or find; "": all
	ToolChoice      ToolChoice
	Name            string   // with Named: the function, without "functions."
	Final           *Grammar // of the answer; nil: free text
	// MaxReasoning bounds the tokens of analysis. At the bound the message is closed, and the
	// answer, or the call that ToolChoice demands, is forced. 0: no bound; negative: no analysis.
	MaxReasoning int
	// SampleBodies samples every token of a body, even without a choice, because its logprobs are
	// requested.
	SampleBodies bool
	// Closing ends a body with a grammar as soon as the grammar allows it.
	Closing bool
	// Ends are special tokens that end a free answer like <|return|>, as in the model's training.
	Ends []int32
}

// maxMessages is the number of messages after which the answer or call is forced.
const maxMessages = 16

// place is a turn's position in a message.
type place uint8

const (
	inHeader place = iota
	inBody
	atStart       // <|start|> is next
	inRole        // assistant is next
	finished      // the turn has ended
	unconstrained // a disallowed token was sampled: everything is allowed now
)

type Turn struct {
	rules TurnRules
	tools []recipient
	body  []*Grammar // of each tool; nil: free text

	place     place
	table     *headerTable
	node      int32
	tool      int32  // named in the header, -1 for none
	channel   string // of the body
	ender     int32  // of the body
	free      enderMask
	matcher   *automaton.Matcher
	hasText   bool // the body has at least one token
	messages  int
	reasoning int // tokens of analysis so far
}

// roleToken is "assistant", which is one token; startMask and roleMask allow the tokens between
// messages.
var (
	roleToken = sync.OnceValue(func() int32 { return token.Get().Encode(nil, "assistant")[0] })
	startMask = sync.OnceValue(func() []uint64 { return automaton.Only(token.Start) })
	roleMask  = sync.OnceValue(func() []uint64 { return automaton.Only(roleToken()) })
)

// NewTurn begins after <|start|>assistant. Errors name rules that cannot be met.
func NewTurn(r TurnRules) (*Turn, error) {
	t := &Turn{rules: r}
	if r.ToolChoice > Named {
		return nil, fmt.Errorf("tool choice %d is unknown", r.ToolChoice)
	}
	seen := map[string]bool{}
	for _, f := range r.Functions {
		if err := checkName(f.Name); err != nil {
			return nil, err
		}
		if seen[f.Name] {
			return nil, fmt.Errorf("the function %q is offered twice", f.Name)
		}
		seen[f.Name] = true
		if r.ToolChoice == None || r.ToolChoice == Named && f.Name != r.Name {
			continue
		}
		body, kind := f.Body, functionTool
		if f.Text {
			kind = textTool
		} else if body == nil {
			body = schema.AnyObject()
		}
		t.offer(recipient{"functions." + f.Name, kind}, body)
	}
	if r.ToolChoice == Named && !seen[r.Name] {
		return nil, fmt.Errorf("the tool choice names %q, which is not offered", r.Name)
	}
	if r.ToolChoice == Auto || r.ToolChoice == Required {
		if r.Python {
			t.offer(recipient{"python", pythonTool}, nil)
		}
		if r.Browser {
			for _, name := range []string{"search", "open", "find"} {
				if r.BrowserOnly == "" || r.BrowserOnly == name {
					t.offer(recipient{"browser." + name, browserTool}, schema.AnyObject())
				}
			}
		}
	}
	if r.ToolChoice == Required && len(t.tools) == 0 {
		return nil, errors.New("the tool choice requires a call, but no tool is offered")
	}
	t.beginHeader()
	return t, nil
}

func (t *Turn) offer(r recipient, body *Grammar) {
	t.tools = append(t.tools, r)
	t.body = append(t.body, body)
}

func (t *Turn) beginHeader() {
	must := t.rules.ToolChoice == Required || t.rules.ToolChoice == Named
	spent := t.messages >= maxMessages || t.rules.MaxReasoning > 0 &&
		t.reasoning >= t.rules.MaxReasoning
	analysis := t.rules.MaxReasoning >= 0 && !spent
	var r headerRules
	switch {
	case must:
		r = headerRules{calls: true, oneForm: true, analysis: analysis && t.messages == 0}
	case spent:
		r = headerRules{final: true}
	default:
		// without tools a preamble would only be reasoning under another name
		r = headerRules{analysis: analysis, commentary: analysis || len(t.tools) > 0, final: true,
			calls: len(t.tools) > 0}
	}
	t.place, t.table, t.node, t.tool = inHeader, tableFor(t.tools, r), 0, -1
}

func (t *Turn) Mask() []uint64 {
	switch t.place {
	case inHeader:
		return t.table.maskAt(t.node)
	case atStart:
		return startMask()
	case inRole:
		return roleMask()
	case inBody:
		switch {
		case t.matcher != nil && t.rules.Closing:
			return closing(t.matcher, t.ender)
		case t.matcher != nil:
			return t.matcher.Mask(t.ender)
		case t.budgetSpent():
			return t.free.end
		case !t.hasText && t.ender != token.End:
			return textMask()
		}
		return t.free.text
	}
	return nil
}

func (t *Turn) budgetSpent() bool {
	return t.ender == token.End && t.channel == Analysis && t.rules.MaxReasoning > 0 &&
		t.reasoning >= t.rules.MaxReasoning
}

func (t *Turn) Forced() []int32 {
	switch t.place {
	case inHeader:
		return t.table.forced(t.node)
	case atStart:
		return []int32{token.Start, roleToken()}
	case inRole:
		return []int32{roleToken()}
	case inBody:
		if t.rules.SampleBodies || t.matcher == nil && !t.budgetSpent() {
			return nil
		}
		if id, ok := single(t.Mask()); ok {
			return []int32{id}
		}
	}
	return nil
}

func (t *Turn) Body() (*automaton.Matcher, int32) {
	if t.place != inBody {
		return nil, 0
	}
	return t.matcher, t.ender
}

func (t *Turn) Accept(id int32) bool {
	if !t.accept(id) {
		t.place = unconstrained
		return false
	}
	return true
}

func (t *Turn) accept(id int32) bool {
	switch t.place {
	case inHeader:
		return t.acceptHeader(id)
	case inBody:
		return t.acceptBody(id)
	case atStart:
		t.place = inRole
		return id == token.Start
	case inRole:
		t.beginHeader()
		return id == roleToken()
	}
	return false
}

func (t *Turn) acceptHeader(id int32) bool {
	if id < 0 || id >= token.VocabSize {
		return false
	}
	node := t.node
	if int(id) >= automaton.OrdinaryTokens {
		node = t.table.step(node, id)
	} else {
		for _, b := range token.Get().TokenBytes(id) {
			if node = t.table.step(node, int32(b)); node < 0 {
				return false
			}
			if tool := t.table.nodes[node].tool; tool >= 0 {
				t.tool = tool
			}
		}
	}
	if node < 0 {
		return false
	}
	t.node = node
	if channel := t.table.nodes[node].channel; channel != "" {
		t.beginBody(channel)
	}
	return true
}

func (t *Turn) beginBody(channel string) {
	var g *Grammar
	t.place, t.channel, t.hasText = inBody, channel, false
	switch {
	case t.tool >= 0:
		t.ender, g = token.Call, t.body[t.tool]
	case channel == Final:
		t.ender, g = token.Return, t.rules.Final
	default:
		t.ender = token.End
	}
	t.free, t.matcher = enderMasks()[t.ender], nil
	if g != nil {
		t.matcher = g.Matcher()
	} else if t.ender == token.Return && len(t.rules.Ends) > 0 {
		t.free.text = withEnds(t.free.text, t.rules.Ends)
	}
}

func (t *Turn) acceptBody(id int32) bool {
	if t.ender == token.Return && t.matcher == nil && slices.Contains(t.rules.Ends, id) {
		id = t.ender
	}
	if id == t.ender {
		if t.matcher != nil && !t.matcher.Done() || t.matcher == nil && !t.hasText &&
			id != token.End {
			return false
		}
		t.matcher = nil
		t.messages++
		t.place = finished
		if id == token.End {
			t.place = atStart
		}
		return true
	}
	if id < 0 || int(id) >= automaton.OrdinaryTokens || t.budgetSpent() {
		return false
	}
	t.hasText = true
	if t.matcher != nil {
		return t.matcher.Accept(id)
	}
	if t.channel == Analysis && t.ender == token.End {
		t.reasoning++
	}
	return true
}

// single returns the only id that a mask allows, if it is the only one.
func single(mask []uint64) (int32, bool) {
	id := int32(-1)
	for i, w := range mask {
		if w == 0 {
			continue
		}
		if id >= 0 || w&(w-1) != 0 {
			return 0, false
		}
		id = int32(i*64 + bits.TrailingZeros64(w))
	}
	return id, id >= 0
}

// The masks of free bodies: all text, and all text or the end token.
var (
	textMask = sync.OnceValue(func() []uint64 {
		m := automaton.NewMask()
		for id := range automaton.OrdinaryTokens {
			automaton.Allow(m, int32(id))
		}
		return m
	})
	enderMasks = sync.OnceValue(func() map[int32]enderMask {
		all := make(map[int32]enderMask)
		for _, id := range []int32{token.End, token.Return, token.Call} {
			all[id] = enderMask{text: slices.Clone(textMask()), end: automaton.Only(id)}
			automaton.Allow(all[id].text, id)
		}
		return all
	})
)

// enderMask has the masks of a body with a certain end token: text or the ender, and the ender
// alone.
type enderMask struct{ text, end []uint64 }

// extraEndMasks caches the masks of answers with additional end tokens. A model's turns share them.
var extraEndMasks sync.Map

func withEnds(mask []uint64, ends []int32) []uint64 {
	key := fmt.Sprint(ends)
	entry, ok := extraEndMasks.Load(key)
	if !ok {
		mask = slices.Clone(mask)
		for _, id := range ends {
			automaton.Allow(mask, id)
		}
		entry, _ = extraEndMasks.LoadOrStore(key, mask)
	}
	return entry.([]uint64)
}
