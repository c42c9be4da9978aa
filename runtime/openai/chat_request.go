// POST /v1/chat/completions: what a request asks for.

package openai

import (
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

// chatRequest is a request that has been checked.
type chatRequest struct {
	choicesRequest
	reasoning bool // show it
	names     map[string]shownTool
	offer     offer
	functions bool // calls have the deprecated form
}

// parseChat checks a request; bound is the port's limit of reasoning tokens.
func parseChat(o *object, bound int) *chatRequest {
	r := &chatRequest{
		choicesRequest: readChoices(o, "messages"),
		reasoning: o.boolean("include_reasoning", true) &&
			!o.object("reasoning").flag("exclude"),
	}
	textOnly(o)
	tools := readOffer(o)
	r.functions = tools.readFunctions(o)
	r.offer = tools
	r.ignored, r.names = tools.ignored, tools.shown()
	turn := session.Request{Params: sampling(o)}
	turn.Params.Logprobs = logprobsWanted(o)
	r.logprobs = turn.Params.Logprobs >= 0
	talk := chatConversation(o)
	turn.Messages, turn.Instructions = talk.Messages, talk.instructions("")
	r.fill(&turn, o, tools, bound, "max_completion_tokens", "max_tokens")
	turn.Prediction, r.predicted = prediction(o), o.has("prediction")
	r.turns = choices(turn, r.n)
	return r
}

// prediction is what the client expects the answer to be.
func prediction(o *object) string {
	p := o.object("prediction")
	if p == nil {
		return ""
	}
	if kind := p.text("type"); kind != "content" && kind != "" {
		p.get("type").must("content")
	}
	return content(p, "content", false)
}

// logprobsWanted is sample.Params.Logprobs: how many rivals each token comes with, -1 for no
// logprobs at all.
func logprobsWanted(o *object) int {
	top := o.integer("top_logprobs", 0, sample.MaxTopLogprobs, 0)
	if o.flag("logprobs") {
		return top
	}
	if top > 0 {
		o.get("top_logprobs").invalid(" needs logprobs to be true")
	}
	return -1
}

func chatConversation(o *object) *conversation {
	talk := &conversation{}
	var calls callLedger
	for _, v := range messagesOf(o) {
		chatMessage(talk, v.object(), &calls)
	}
	return talk
}

func chatMessage(talk *conversation, m *object, calls *callLedger) {
	if m == nil {
		return
	}
	switch m.text("role") {
	case "system", "developer":
		talk.developer(content(m, "content", false))
	case "user":
		if why := calls.waiting(); why != "" {
			m.value().invalid(": %s", why)
		}
		needContent(m)
		talk.Messages = append(talk.Messages, session.User(content(m, "content", false)))
	case "assistant":
		chatAssistant(talk, m, calls)
	case "tool":
		id := m.text("tool_call_id")
		if id == "" {
			m.get("tool_call_id").missing()
		} else if !calls.answer(id) {
			m.get("tool_call_id").invalid(": no call with the id %q came before this result", id)
		}
		talk.result(id, m.text("name"), content(m, "content", true))
	case "function":
		readFunctionResult(talk, m, calls)
	case "":
		m.get("role").missing()
	default:
		m.get("role").must("one of [system developer user assistant tool function]")
	}
}

// needContent complains about a user's message that has none.
func needContent(m *object) {
	if kind := m.get("content").Kind(); kind == jsondoc.Null ||
		kind == jsondoc.Array && m.get("content").Count(1) == 0 {
		m.get("content").missing()
	}
}

// chatAssistant takes an earlier turn apart: reasoning, text and calls are messages of their own in
// Harmony. Text before calls is a preamble, text alone the answer.
func chatAssistant(talk *conversation, m *object, ledger *callLedger) {
	talk.add(session.AssistantReasoning, thought(m))
	text := content(m, "content", false)
	if text == "" {
		text = m.text("refusal")
	}
	var calls []value
	if m.has("tool_calls") {
		calls = talk.calls(m.get("tool_calls"))
	}
	if len(calls) == 0 && m.has("function_call") {
		talk.add(session.AssistantCommentary, text)
		readFunctionCall(talk, m, ledger)
		return
	}
	if len(calls) == 0 {
		talk.add(session.AssistantAnswer, text)
		return
	}
	talk.add(session.AssistantCommentary, text)
	for _, v := range calls {
		call := v.object()
		f := call.object("function")
		if f == nil { // a custom tool's call
			f = call.object("custom")
		}
		if f == nil {
			call.get("function").missing()
			return
		}
		id := call.text("id")
		if id == "" {
			call.get("id").missing()
		}
		ledger.call(id)
		readCall(talk, f, id)
	}
}

// textParts are the types of content parts that hold text, of both APIs.
var textParts = []string{"text", "input_text", "output_text", "refusal", "summary_text",
	"reasoning_text"}

// imageParts are the types of parts that hold images, of all APIs.
var imageParts = []string{"input_image", "image_url", "image"}

func leftOut(kind string) string { return "[" + kind + " left out: the model reads text only]" }

// content reads text: a string, parts of text joined as they are, or null. The model reads text
// only, so images and the like are refused; where a tool returned one (lenient) or the server is
// told to leave images out, a note stands in its place: refusing would end the agent's whole
// conversation.
func content(m *object, name string, lenient bool) string {
	v := m.get(name)
	switch v.Kind() {
	case jsondoc.Null:
		return ""
	case jsondoc.String:
		return v.text()
	case jsondoc.Array:
	default:
		v.wrong("a string or an array of content parts")
		return ""
	}
	list := v.list()
	all := make([]string, 0, len(list))
	for _, p := range list {
		if p.Kind() == jsondoc.String {
			all = append(all, p.text())
			continue
		}
		part := p.object()
		switch kind := part.text("type"); {
		case slices.Contains(textParts, kind), kind == "" && part.has("text"):
			all = append(all, part.text("text")+part.text("refusal"))
		case (kind == "input_file" || kind == "file") && !lenient:
			all = append(all, fileText(part))
		case lenient, m.c.images && slices.Contains(imageParts, kind):
			all = append(all, leftOut(kind))
		case kind == "":
			part.get("type").missing()
		default:
			part.unreadable("the model reads text only")
		}
	}
	return strings.Join(all, "")
}
