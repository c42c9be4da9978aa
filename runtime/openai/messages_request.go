// POST /v1/messages: what a request of Anthropic's API asks for.
//
// What must stay true: a system text renders the same whether it comes as a string or as blocks,
// else the prefix cache is lost in the next turn; thinking comes back by its signature, also where
// its text was left out.

package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/session"
)

type messagesRequest struct {
	request
	thinking bool // show thinking blocks; clients that do not ask for them read the first block
	silent   bool // thinking blocks have no text, only a signature
}

// Budgets of thinking, in tokens: up to the first the effort is low, from the second on high.
const lowBudget, highBudget = 2048, 16384

// parseMessages checks a request; bound is the port's limit of reasoning tokens.
func parseMessages(o *object, bound int) *messagesRequest {
	r := &messagesRequest{request: request{model: o.text("model"), n: 1, stream: o.flag("stream"),
		history: "messages"}}
	r.standIn = ofAnotherMaker(r.model)
	o.refuse(refusedEverywhere)
	// context_management asks to forget earlier thinking, which is done; the rest has no effect
	for _, name := range []string{"context_management", "cache_control", "inference_geo"} {
		o.get(name)
	}
	tools := messagesOffer(o)
	r.ignored = tools.ignored
	turn := session.Request{Params: sampling(o)}
	talk := messagesConversation(o)
	turn.Messages, turn.Instructions = talk.Messages, talk.instructions("")
	turn.MaxTokens = tokenLimit(o, "max_tokens")
	turn.Stop = stopList(o, "stop_sequences")
	turn.MaxReasoning = bound
	r.readThinking(o, &turn)
	tools.into(&turn)
	if f := o.object("output_config").object("format"); f != nil {
		r.format = formatBy(f.get("schema"))
	}
	r.format.into(&turn)
	r.turns = []session.Request{turn}
	return r
}

// ofAnotherMaker tells whether a model is another maker's. Agents use such names by themselves, for
// titles and the like, and users cannot always change them.
func ofAnotherMaker(model string) bool {
	return strings.HasPrefix(model, "claude-") ||
		strings.HasPrefix(model, "gpt-") && !strings.HasPrefix(model, "gpt-oss")
}

// readThinking reads how long the model may think, and what the client wants to see of it.
func (r *messagesRequest) readThinking(o *object, turn *session.Request) {
	turn.Effort = "medium"
	think := o.object("thinking")
	switch think.text("type") {
	case "":
	case "adaptive", "enabled":
		r.thinking, r.silent = true, think.text("display") == "omitted"
		if budget := think.integer("budget_tokens", 1, 1<<30, 0); budget > 0 {
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
		think.get("type").must("enabled, adaptive or disabled")
	}
	if v := o.object("output_config").get("effort"); v.Kind() != jsondoc.Null {
		turn.Effort = effortLevel(v)
	}
}

// messagesOffer reads tools and tool_choice. Tools of Anthropic's own types are left out.
func messagesOffer(o *object) offer {
	var of offer
	for _, v := range of.list(o, "tools") {
		t := v.object()
		if kind := t.text("type"); kind != "" && kind != "custom" {
			of.ignored = append(of.ignored, kind)
			continue
		}
		of.functions = append(of.functions, readFunctionWith(t, "input_schema"))
	}
	c := o.object("tool_choice")
	if c == nil {
		return of
	}
	v := o.get("tool_choice")
	switch kind := c.text("type"); kind {
	case "auto", "none":
		of.mode(v, kind)
	case "any":
		of.mode(v, "required")
	case "tool":
		of.name(v, c.text("name"))
	default:
		c.get("type").must("auto, any, tool or none")
	}
	return of
}

func messagesConversation(o *object) *conversation {
	talk := &conversation{}
	for _, text := range blockTexts(o, "system") {
		talk.developer(text)
	}
	var calls callLedger
	list := messagesOf(o)
	for i, v := range list {
		m := v.object()
		switch m.text("role") {
		case "user":
			messagesUser(talk, m, &calls)
		case "assistant":
			messagesAssistant(talk, m, &calls)
			if i == len(list)-1 {
				m.value().unsupported("an answer that the client begins",
					"let the last message be the user's")
			}
		case "system", "developer":
			talk.developer(strings.Join(blockTexts(m, "content"), "\n\n"))
		default:
			m.get("role").must("user or assistant")
		}
	}
	return talk
}

// blockTexts are the texts of a string, or of a list of text blocks.
func blockTexts(o *object, name string) (texts []string) {
	v := o.get(name)
	switch v.Kind() {
	case jsondoc.Null:
	case jsondoc.Array:
		for _, b := range v.list() {
			block := b.object()
			if block.text("type") != "text" {
				block.unreadable("the model reads text only")
			}
			texts = append(texts, block.text("text"))
		}
	default:
		texts = append(texts, v.text())
	}
	return notEmpty(texts)
}

// blocks are the content blocks of a message; a string is one text block.
func blocksOf(c *conversation, m *object) []*object {
	v := m.get("content")
	switch v.Kind() {
	case jsondoc.String:
		text := v.text()
		raw, _ := marshal(text) // a string
		return []*object{v.becomes(json.RawMessage(`{"type":"text","text":` + string(raw) +
			`}`)).object()}
	case jsondoc.Array:
		var list []*object
		for _, b := range c.calls(v) {
			if block := b.object(); block != nil {
				list = append(list, block)
			}
		}
		return list
	}
	m.get("content").missing()
	return nil
}

// messagesUser takes a message apart: results of calls first, then what the user says.
func messagesUser(talk *conversation, m *object, calls *callLedger) {
	list := blocksOf(talk, m)
	if len(list) == 0 {
		m.get("content").missing()
	}
	isResult := func(b *object) bool { return b.text("type") == "tool_result" }
	for _, b := range list {
		if !isResult(b) {
			continue
		}
		id := b.text("tool_use_id")
		if !calls.answer(id) {
			b.get("tool_use_id").invalid(": no tool_use with the id %q came before this result", id)
		}
		talk.result(id, "", content(b, "content", true))
	}
	list = slices.DeleteFunc(list, isResult)
	if len(list) == 0 {
		return
	}
	if why := calls.waiting(); why != "" {
		m.value().invalid(": %s", why)
	}
	var texts []string
	for _, b := range list {
		switch kind := b.text("type"); {
		case kind == "text":
			texts = append(texts, b.text("text"))
		case kind == "document":
			texts = append(texts, documentText(b))
		case m.leavesImagesOut() && slices.Contains(imageParts, kind):
			texts = append(texts, leftOut(kind))
		default:
			b.unreadable("the model reads text only")
		}
	}
	talk.Messages = append(talk.Messages, session.User(strings.Join(texts, "\n\n")))
}

// messagesAssistant takes an earlier answer apart: text before a call is a preamble.
func messagesAssistant(talk *conversation, m *object, calls *callLedger) {
	list := blocksOf(talk, m)
	last := len(list) // where the calls end
	for last > 0 && list[last-1].text("type") != "tool_use" {
		last--
	}
	for i, b := range list {
		switch b.text("type") {
		case "thinking":
			thought := unseal(b.text("signature"))
			if thought == "" { // of another server
				thought = b.text("thinking")
			}
			talk.add(session.AssistantReasoning, thought)
		case "redacted_thinking":
		case "text":
			if i < last {
				talk.add(session.AssistantCommentary, b.text("text"))
			} else {
				talk.add(session.AssistantAnswer, b.text("text"))
			}
		case "tool_use":
			messagesCall(talk, b, calls)
		default:
			b.unreadable("send text, thinking and tool_use")
		}
	}
}

func messagesCall(talk *conversation, b *object, calls *callLedger) {
	id, name, input := b.text("id"), b.text("name"), b.get("input")
	if id == "" {
		b.get("id").missing()
	}
	if !toolName(name) {
		b.get("name").invalid(" is %q, which is not a tool name", name)
	}
	if input.Kind() != jsondoc.Object {
		input.wrong("an object")
	}
	calls.call(id)
	talk.Messages = append(talk.Messages, session.FunctionCall(id, name, string(input.Raw)))
}

func documentText(block *object) string {
	source := block.object("source")
	var text string
	switch kind := source.text("type"); kind {
	case "base64":
		text = fileContents(source, source.at("data"), source.text("data"))
	case "text":
		text = source.text("data")
	case "content":
		text = content(source, "content", false)
	default:
		block.get("source").unsupported(fmt.Sprintf("a document by %q", kind),
			"send it in base64 or as text")
	}
	if title := block.text("title"); title != "" && text != "" {
		return title + ":\n" + text
	}
	return text
}
