// POST /v1/chat/completions: what a request asks for, functions and function_call included, which
// OpenAI has deprecated in favour of tools.
//
// A request in that form is answered in it. Its calls have no ids; a call's place in the request
// serves as its id. What must stay true: a result follows a call of the same function.

package openai

import (
	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

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
	r.functions = readFunctions(&tools, o)
	r.offer = tools
	r.ignored, r.names = tools.ignored, tools.shown()
	turn := session.Request{Params: sampling(o)}
	turn.Params.Logprobs = logprobsWanted(o)
	r.logprobs = turn.Params.Logprobs >= 0
	talk, calls := &conversation{}, &callLedger{}
	for _, v := range messagesOf(o) {
		chatMessage(talk, v.object(), calls)
	}
	turn.Messages, turn.Instructions = talk.Messages, talk.instructions("")
	r.fill(&turn, o, bound, "max_completion_tokens", "max_tokens")
	tools.into(&turn)
	turn.Prediction, r.predicted = prediction(o), o.has("prediction")
	r.turns = choices(turn, r.n)
	return r
}

func textOnly(o *object) {
	for _, v := range o.list("modalities") {
		if m := v.text(); m != "text" {
			o.get("modalities").unsupported("the modality "+m, "the model writes text only")
		}
	}
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

// readFunctions reads the deprecated parameters, and tells whether the request has them.
func readFunctions(of *offer, o *object) bool {
	if !o.has("functions") {
		if o.has("function_call") {
			o.get("function_call").invalid(" needs functions")
		}
		return false
	}
	if o.has("tools") || o.has("tool_choice") {
		o.get("functions").invalid(" is the deprecated form of tools: only one of both can " +
			"be given")
	}
	for _, v := range of.list(o, "functions") {
		of.functions = append(of.functions, readFunction(v.object()))
	}
	switch v := o.get("function_call"); v.Kind() {
	case jsondoc.Null:
	case jsondoc.String:
		if how := v.text(); how != "auto" && how != "none" {
			v.must(`"auto", "none" or an object with a name`)
		} else {
			of.mode(v, how)
		}
	default:
		of.name(v, v.object().text("name"))
	}
	return true
}

func readFunctionCall(talk *conversation, m *object, ledger *callLedger) {
	call := m.object("function_call")
	if call == nil {
		return
	}
	ledger.function, ledger.path = call.text("name"), call.value().Path
	ledger.call(ledger.path)
	readCall(talk, call, ledger.path)
}

func readFunctionResult(talk *conversation, m *object, ledger *callLedger) {
	name := m.text("name")
	switch {
	case name == "":
		m.get("name").missing()
	case !ledger.open[ledger.path]:
		m.value().invalid(": no function_call of the assistant waits for this result")
	case name != ledger.function:
		m.get("name").invalid(" is %q, but the function_call before it is of %q", name,
			ledger.function)
	}
	ledger.answer(ledger.path)
	talk.result(ledger.path, name, content(m, "content", true))
}

// thought finds the reasoning of an assistant message of chat completions.
func thought(o *object) string {
	for _, holder := range []*object{o, o.object("provider_specific_fields")} {
		for _, name := range []string{"reasoning", "reasoning_content"} {
			if v := holder.get(name); v.Kind() == jsondoc.String {
				return v.text()
			}
		}
	}
	// the Agents SDK for JavaScript leaves it on a text part
	if v := o.get("content"); v.Kind() == jsondoc.Array {
		for _, part := range v.list() {
			if part.Kind() != jsondoc.Object {
				continue
			}
			if r := part.object().get("reasoning_content"); r.Kind() == jsondoc.String {
				return r.text()
			}
		}
	}
	return ""
}
