// POST /v1/messages: the request of Anthropic's API.
//
// What must stay true: a system text renders the same as a string or as blocks, or the next turn
// would miss the prefix cache; thinking is restored from its signature, even without its text.

package messages

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/session"
)

type messagesRequest struct {
	request.Draft
	offer    tools.Offer
	conv     request.Conversation
	builtins []tools.Requested
	tools    []*tools.Tool // of the turn, once it is started
	thinking bool          // show thinking blocks; other clients expect text in the first block
	noText   bool          // thinking blocks have no text, only a signature
}

// Budgets of thinking, in tokens: up to the first the effort is low, from the second on high.
const lowBudget, highBudget = 2048, 16384

func Parameters() []fields.Parameter { return new(messagesRequest).parameters(nil) }

func (r *messagesRequest) parameters(pool *tools.Pool) []fields.Parameter {
	return slices.Concat([]fields.Parameter{fields.Text("model", &r.Model),
		fields.Boolean("stream", false, &r.Stream)}, request.RefusedEverywhere(),
		[]fields.Parameter{fields.Row("thread", func(o *fields.Object, name string) {
			if o.Has(name) { // after this fault Anthropic's SDKs continue without a stored one
				o.ReplaceFault(fields.Refusal(http.StatusBadRequest, name, threadUnsupported,
					"threads are not supported by this server; send the whole conversation in "+
						"messages"))
			}
		})},
		// context_management asks to forget earlier thinking, which is always done
		fields.NoEffect("context_management", "cache_control", "inference_geo"),
		[]fields.Parameter{fields.Row("tools objects", func(o *fields.Object, _ string) {
			r.readTools(o, pool)
		}), fields.Row("tool_choice object", nil), fields.Refused("mcp_servers", "[]",
			"name the server in mcp.json and ask /v1/responses")},
		r.Sampling(), []fields.Parameter{fields.Row("messages! objects", r.readMessages),
			fields.Row("system any", nil)},
		[]fields.Parameter{fields.Row("max_tokens! integer 0", r.readLimit),
			r.Stop("stop_sequences strings"),
			fields.Row("thinking object", r.readThinking),
			fields.Row("output_config", func(o *fields.Object, name string) {
				r.SetEffort(o.Object(name).Get("effort")) // it overrides a budget
			})},
		r.Constraints("output_config object"))
}

// readLimit reads the limit of all tokens. 0 fills the prefix cache; some clients send -1 for none.
func (r *messagesRequest) readLimit(o *fields.Object, name string) {
	n := o.Integer(name, -1, math.MaxInt32, -1)
	r.Turn.MaxTokens, r.Turn.PromptOnly = max(n, 0), n == 0
}

func (p API) parse(o *fields.Object) *messagesRequest {
	r := &messagesRequest{Draft: request.NewDraft("messages", p.MaxReasoning)}
	fields.Read(o, r.parameters(p.tools))
	r.Progress = r.Stream
	if len(r.builtins) > 0 {
		r.Start = func(ctx context.Context, a *answer.Answer, turn session.Request) (
			started session.Turn, err error) {
			started, r.tools, err = p.tools.Start(ctx, a, a.Runner, turn, r.builtins,
				tools.Settings{Chosen: r.offer.Hosted})
			return started, err
		}
	}
	r.Turn.Messages = r.conv.Messages
	r.Instruct(r.conv.Instructions(""))
	r.offer.ApplyTo(&r.Turn)
	r.Turns = []session.Request{r.Turn}
	return r
}

// readThinking reads the budget of thinking, and whether the client wants to see it.
func (r *messagesRequest) readThinking(o *fields.Object, name string) {
	think, turn := o.Object(name), &r.Turn
	switch think.Text("type") {
	case "":
	case "adaptive", "enabled":
		r.thinking, r.noText = true, think.Text("display") == "omitted"
		if budget := think.Integer("budget_tokens", 1, 1<<30, 0); budget > 0 {
			turn.MaxReasoning = budget
			if budget <= lowBudget {
				turn.Effort = "low"
			} else if budget >= highBudget {
				turn.Effort = "high"
			}
		}
	case "disabled":
		turn.MaxReasoning = -1
	default:
		think.Get("type").MustBe("enabled, adaptive or disabled")
	}
}

// reference matches the name of a tool that a search has found.
var reference = regexp.MustCompile(`"tool_name"\s*:\s*"([^"\\]+)"`)

// readTools reads tools and tool_choice.
func (r *messagesRequest) readTools(o *fields.Object, pool *tools.Pool) {
	var names []string
	if messages := o.Get("messages").Raw; bytes.Contains(messages, []byte("tool_reference")) {
		for _, m := range reference.FindAllSubmatch(messages, -1) {
			names = append(names, string(m[1]))
		}
	}
	r.offer = tools.ReadAnthropic(o, names)
	r.readChoice(o)
	r.builtins, r.Ignored = pool.ReadRequested(o, &r.offer, false)
}

func (r *messagesRequest) readChoice(o *fields.Object) {
	c, offer := o.Object("tool_choice"), &r.offer
	if c == nil {
		return
	}
	v := o.Get("tool_choice")
	switch kind := c.Text("type"); kind {
	case "auto", "none":
		offer.Mode(v, kind)
	case "any":
		offer.Mode(v, "required")
	case "tool":
		offer.NameAny(v, c.Text("name"))
	default:
		c.Get("type").MustBe("auto, any, tool or none")
	}
}

func (r *messagesRequest) readMessages(o *fields.Object, _ string) {
	conv := &r.conv
	for _, text := range blockTexts(o, "system") {
		conv.Developer(text)
	}
	list, prefilled := request.MessagesOf(o), false
	fields.ReadDated(list, func(i int, v fields.Value) {
		m := v.Object()
		if m == nil {
			return
		}
		switch m.Text("role") {
		case "user":
			messagesUser(conv, m)
		case "assistant":
			messagesAssistant(conv, m)
			prefilled = i == len(list)-1
		case "system", "developer":
			conv.Developer(strings.Join(blockTexts(m, "content"), "\n\n"))
		default:
			m.Get("role").MustBe("user or assistant")
			conv.Stray(m)
		}
	})
	if prefilled {
		list[len(list)-1].Unsupported("an answer that the client begins",
			"let the last message be the user's")
	}
}

// blockTexts are the texts of a string, or of a list of text blocks.
func blockTexts(o *fields.Object, name string) (texts []string) {
	v := o.Get(name)
	if v.Kind() == jsondoc.Array {
		texts = request.Texts(o, v.List(), false, false, "", readBlock)
	} else {
		texts = append(texts, request.Content(o, name, false))
	}
	return request.NotEmpty(texts)
}

// readBlock reads a text or another block of the history.
func readBlock(b *fields.Object, kind string) (text string) {
	switch {
	case kind == "text":
		return b.Text("text")
	case kind == "document":
		// in the history as in the newest message, for the prefix cache
		f := b.Value().Try(func() { text = documentText(b) })
		if f == nil && text != "" || !b.IsPast() {
			b.AddFault(f)
			return text
		}
		text = request.TextInside(b)
	case b.IsPast() || kind == "search_result":
		text = request.TextInside(b)
	}
	if text == "" {
		b.Unreadable("the model reads text only")
	}
	return text
}

// blocksOf returns the content blocks of a message; a text is a text block.
func blocksOf(c *request.Conversation, m *fields.Object) (list []*fields.Object) {
	v := m.Get("content")
	values := []fields.Value{v}
	if v.Kind() == jsondoc.Array {
		values = c.Calls(v)
	} else if v.Kind() != jsondoc.Null {
		text, _ := answer.Marshal(request.Content(m, "content", false)) // a string
		values[0] = v.WithRaw(text)
	}
	if len(values) == 0 || v.Kind() == jsondoc.Null {
		v.Missing()
		return nil
	}
	for _, b := range values {
		if b.Kind() == jsondoc.String {
			b.Raw = slices.Concat([]byte(`{"type":"text","text":`), b.Raw, []byte("}"))
		}
		if block := b.Object(); block != nil {
			list = append(list, block)
		}
	}
	return list
}

// messagesUser splits a message: results of calls first, then the user's text.
func messagesUser(conv *request.Conversation, m *fields.Object) {
	var rest []fields.Value
	list := blocksOf(conv, m)
	for _, b := range list {
		result := false
		b.Value().Try(func() { // a result's faults are no reason to refuse the text next to it
			if result = isResult(b); result {
				conv.Result(b.Text("tool_use_id"), "", request.Content(b, "content", true))
			}
		})
		if !result {
			rest = append(rest, b.Value())
		}
	}
	if len(rest) > 0 {
		texts := request.Texts(m, rest, false, len(rest) < len(list), "", readBlock)
		conv.Messages = append(conv.Messages, session.User(strings.Join(texts, "\n\n")))
	}
}

// messagesAssistant splits an earlier answer: text before a call is a preamble.
func messagesAssistant(conv *request.Conversation, m *fields.Object) {
	list := blocksOf(conv, m)
	last := len(list) // where the calls end
	for last > 0 && !strings.HasSuffix(list[last-1].Text("type"), "tool_use") {
		last--
	}
	for i, b := range list {
		if i > 0 && readServerResult(conv, list[i-1], b) {
			continue
		}
		switch kind := b.Text("type"); kind {
		case "thinking":
			thought := request.Unseal(b.Text("signature"))
			if thought == "" { // of another server
				thought = b.Text("thinking")
			}
			conv.Add(session.AssistantReasoning, thought)
		case "redacted_thinking":
		case "text":
			if i < last {
				conv.Add(session.AssistantCommentary, request.Content(b, "text", false))
			} else {
				conv.Add(session.AssistantAnswer, request.Content(b, "text", false))
			}
		case "tool_use":
			conv.ReadCall(b, b.Text("id"), true)
		default:
			if strings.HasSuffix(kind, "_tool_use") { // of a tool that a server runs
				conv.AddForeign(b.Text("id"), strings.TrimSuffix(kind, "_use"), b)
			} else if id := b.Text("tool_use_id"); isResult(b) {
				if conv.IsAwaited(id) {
					conv.Result(id, "", request.Content(b, "content", true))
				}
			} else {
				conv.Add(session.AssistantCommentary, request.TextInside(b))
			}
		}
	}
}

// isResult tells whether a block is a tool's result: the client's, or a server's.
func isResult(b *fields.Object) bool {
	kind := b.Text("type")
	return kind == "tool_result" || strings.HasSuffix(kind, "_tool_result")
}

func documentText(block *fields.Object) string {
	source := block.Object("source")
	var text string
	switch kind := source.Text("type"); kind {
	case "base64":
		text = request.FileContents(source, source.PathOf("data"), source.Text("data"))
	case "text":
		text = source.Text("data")
	case "content":
		text = request.Content(source, "content", false)
	default:
		block.Get("source").Unsupported(fmt.Sprintf("a document by %q", kind),
			"send it in base64 or as text")
	}
	if context := block.Text("context"); context != "" && text != "" {
		text = context + "\n" + text
	}
	if title := block.Text("title"); title != "" && text != "" {
		return title + ":\n" + text
	}
	return text
}
