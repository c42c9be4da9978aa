// POST /v1/chat/completions: what a request asks for, functions and function_call included, which
// OpenAI has deprecated in favour of tools.
//
// A request in that form is answered in it. Its calls have no ids; a call's place in the request
// serves as its id. What must stay true: a result follows a call of the same function.

package chat

import (
	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

type request struct {
	answer.ChoicesRequest
	reasoning bool // show it
	names     map[string]tools.Shown
	offer     tools.Offer
	functions bool // calls have the deprecated form
}

// Parse checks a request; bound is the port's limit of reasoning tokens.
func Parse(o *answer.Object, bound int) *request {
	r := &request{
		ChoicesRequest: answer.ReadChoices(o, "messages"),
		reasoning: o.Boolean("include_reasoning", true) &&
			!o.Object("reasoning").Flag("exclude"),
	}
	textOnly(o)
	tools := tools.Read(o)
	r.functions = readFunctions(&tools, o)
	r.offer = tools
	r.Ignored, r.names = tools.Ignored, tools.Shown()
	turn := session.Request{Params: answer.Sampling(o)}
	turn.Params.Logprobs = logprobsWanted(o)
	r.Logprobs = turn.Params.Logprobs >= 0
	talk, calls := &answer.Conversation{}, &answer.Ledger{}
	for _, v := range answer.MessagesOf(o) {
		chatMessage(talk, v.Object(), calls)
	}
	turn.Messages, turn.Instructions = talk.Messages, talk.Instructions("")
	r.Fill(&turn, o, bound, "max_completion_tokens", "max_tokens")
	tools.Into(&turn)
	turn.Prediction, r.Predicted = prediction(o), o.Has("prediction")
	r.Turns = answer.Choices(turn, r.N)
	return r
}

func textOnly(o *answer.Object) {
	for _, v := range o.List("modalities") {
		if m := v.Text(); m != "text" {
			o.Get("modalities").Unsupported("the modality "+m, "the model writes text only")
		}
	}
}

// prediction is what the client expects the answer to be.
func prediction(o *answer.Object) string {
	p := o.Object("prediction")
	if p == nil {
		return ""
	}
	if kind := p.Text("type"); kind != "content" && kind != "" {
		p.Get("type").Must("content")
	}
	return answer.Content(p, "content", false)
}

// logprobsWanted is sample.Params.Logprobs: how many rivals each token comes with, -1 for no
// logprobs at all.
func logprobsWanted(o *answer.Object) int {
	top := o.Integer("top_logprobs", 0, sample.MaxTopLogprobs, 0)
	if o.Flag("logprobs") {
		return top
	}
	if top > 0 {
		o.Get("top_logprobs").Invalid(" needs logprobs to be true")
	}
	return -1
}

func chatMessage(talk *answer.Conversation, m *answer.Object, calls *answer.Ledger) {
	if m == nil {
		return
	}
	switch m.Text("role") {
	case "system", "developer":
		talk.Developer(answer.Content(m, "content", false))
	case "user":
		if why := calls.Waiting(); why != "" {
			m.Value().Invalid(": %s", why)
		}
		answer.NeedContent(m)
		talk.Messages = append(talk.Messages, session.User(answer.Content(m, "content", false)))
	case "assistant":
		chatAssistant(talk, m, calls)
	case "tool":
		id := m.Text("tool_call_id")
		if id == "" {
			m.Get("tool_call_id").Missing()
		} else if !calls.Answer(id) {
			m.Get("tool_call_id").Invalid(": no call with the id %q came before this result", id)
		}
		talk.Result(id, m.Text("name"), answer.Content(m, "content", true))
	case "function":
		readFunctionResult(talk, m, calls)
	case "":
		m.Get("role").Missing()
	default:
		m.Get("role").Must("one of [system developer user assistant tool function]")
	}
}

// chatAssistant takes an earlier turn apart: reasoning, text and calls are messages of their own in
// Harmony. Text before calls is a preamble, text alone the answer.
func chatAssistant(talk *answer.Conversation, m *answer.Object, ledger *answer.Ledger) {
	talk.Add(session.AssistantReasoning, thought(m))
	text := answer.Content(m, "content", false)
	if text == "" {
		text = m.Text("refusal")
	}
	var calls []answer.Value
	if m.Has("tool_calls") {
		calls = talk.Calls(m.Get("tool_calls"))
	}
	if len(calls) == 0 && m.Has("function_call") {
		talk.Add(session.AssistantCommentary, text)
		readFunctionCall(talk, m, ledger)
		return
	}
	if len(calls) == 0 {
		talk.Add(session.AssistantAnswer, text)
		return
	}
	talk.Add(session.AssistantCommentary, text)
	for _, v := range calls {
		call := v.Object()
		f := call.Object("function")
		if f == nil { // a custom tool's call
			f = call.Object("custom")
		}
		if f == nil {
			call.Get("function").Missing()
			return
		}
		id := call.Text("id")
		if id == "" {
			call.Get("id").Missing()
		}
		ledger.Call(id)
		answer.ReadCall(talk, f, id)
	}
}

// readFunctions reads the deprecated parameters, and tells whether the request has them.
func readFunctions(of *tools.Offer, o *answer.Object) bool {
	if !o.Has("functions") {
		if o.Has("function_call") {
			o.Get("function_call").Invalid(" needs functions")
		}
		return false
	}
	if o.Has("tools") || o.Has("tool_choice") {
		o.Get("functions").Invalid(" is the deprecated form of tools: only one of both can " +
			"be given")
	}
	for _, v := range of.List(o, "functions") {
		of.Functions = append(of.Functions, tools.ReadFunction(v.Object()))
	}
	switch v := o.Get("function_call"); v.Kind() {
	case jsondoc.Null:
	case jsondoc.String:
		if how := v.Text(); how != "auto" && how != "none" {
			v.Must(`"auto", "none" or an object with a name`)
		} else {
			of.Mode(v, how)
		}
	default:
		of.Name(v, v.Object().Text("name"))
	}
	return true
}

func readFunctionCall(talk *answer.Conversation, m *answer.Object, ledger *answer.Ledger) {
	call := m.Object("function_call")
	if call == nil {
		return
	}
	ledger.Function, ledger.Path = call.Text("name"), call.Value().Path
	ledger.Call(ledger.Path)
	answer.ReadCall(talk, call, ledger.Path)
}

func readFunctionResult(talk *answer.Conversation, m *answer.Object, ledger *answer.Ledger) {
	name := m.Text("name")
	switch {
	case name == "":
		m.Get("name").Missing()
	case !ledger.Open[ledger.Path]:
		m.Value().Invalid(": no function_call of the assistant waits for this result")
	case name != ledger.Function:
		m.Get("name").Invalid(" is %q, but the function_call before it is of %q", name,
			ledger.Function)
	}
	ledger.Answer(ledger.Path)
	talk.Result(ledger.Path, name, answer.Content(m, "content", true))
}

// thought finds the reasoning of an assistant message of chat completions.
func thought(o *answer.Object) string {
	for _, holder := range []*answer.Object{o, o.Object("provider_specific_fields")} {
		for _, name := range []string{"reasoning", "reasoning_content"} {
			if v := holder.Get(name); v.Kind() == jsondoc.String {
				return v.Text()
			}
		}
	}
	// the Agents SDK for JavaScript leaves it on a text part
	if v := o.Get("content"); v.Kind() == jsondoc.Array {
		for _, part := range v.List() {
			if part.Kind() != jsondoc.Object {
				continue
			}
			if r := part.Object().Get("reasoning_content"); r.Kind() == jsondoc.String {
				return r.Text()
			}
		}
	}
	return ""
}
