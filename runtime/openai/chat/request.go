// POST /v1/chat/completions: the request, including functions and function_call, which OpenAI has
// deprecated in favour of tools.
//
// A request in that form is answered in it. Its calls have no ids; a call's place in the request is
// its id. What must stay true: a result follows a call of the same function.

package chat

import (
	"slices"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

type chatRequest struct {
	request.Draft
	reasoning   bool // show it
	logprobs    bool
	topLogprobs int // alternatives of each token with logprobs
	offer       tools.Offer
	functions   bool // calls have the deprecated form
	conv        request.Conversation
}

// Parameters are the rows of a request.
func Parameters() []fields.Parameter { return new(chatRequest).parameters() }

func (r *chatRequest) parameters() []fields.Parameter {
	return slices.Concat(r.Choices(), r.CommonRows("response_format object"), []fields.Parameter{
		fields.Boolean("include_reasoning", true, &r.reasoning),
		fields.Row("reasoning object", r.readReasoning).WithMembers(request.ReasoningMembers...),
		fields.Row("modalities strings", textOnly),
		fields.Row("tools objects", r.readTools), fields.Row("tool_choice any", nil),
		fields.Row("functions objects", r.readFunctions), fields.Row("function_call any", nil),
	}, r.Sampling(), []fields.Parameter{
		fields.Boolean("logprobs", false, &r.logprobs),
		fields.Integer("top_logprobs", 0, sample.MaxTopLogprobs, 0, &r.topLogprobs),
		fields.Row("messages! objects", r.readMessages),
		fields.Row("prediction object", r.readPrediction),
		fields.Row("parallel_tool_calls any", nil), fields.Row("user any", nil),
		fields.Row("metadata object", request.CheckMetadata),
	}, r.ConversationRows("max_completion_tokens integer -1", "max_tokens integer -1"))
}

// Parse checks a request; bound is the port's limit of reasoning tokens.
func Parse(o *fields.Object, bound int) *chatRequest {
	r := &chatRequest{Draft: request.NewDraft("messages", bound)}
	fields.Read(o, r.parameters())
	switch {
	case r.logprobs:
		r.Turn.Params.Logprobs = r.topLogprobs
	case r.topLogprobs > 0:
		o.Get("top_logprobs").Invalid(" needs logprobs to be true")
	}
	r.Turn.Messages = r.conv.Messages
	r.Instruct(r.conv.Instructions(""))
	r.offer.ApplyTo(&r.Turn)
	r.Turns = request.Choices(r.Turn, r.N)
	return r
}

func (r *chatRequest) readReasoning(o *fields.Object, name string) {
	r.reasoning = r.reasoning && !o.Object(name).Flag("exclude")
}

func textOnly(o *fields.Object, name string) {
	for _, v := range o.List(name) {
		if m := v.Text(); m != "text" {
			o.Get(name).Unsupported("the modality "+m, "the model writes text only")
		}
	}
}

func (r *chatRequest) readTools(o *fields.Object, _ string) { r.offer = tools.Read(o) }

func (r *chatRequest) readMessages(o *fields.Object, _ string) {
	calls := &request.Ledger{}
	fields.ReadDated(request.MessagesOf(o), func(_ int, v fields.Value) {
		chatMessage(&r.conv, v.Object(), calls)
	})
}

// readPrediction reads the expected answer.
func (r *chatRequest) readPrediction(o *fields.Object, name string) {
	p := o.Object(name)
	r.Predicted = o.Has(name)
	if p == nil {
		return
	}
	if kind := p.Text("type"); kind != "content" && kind != "" {
		p.Get("type").MustBe("content")
	}
	r.Turn.Prediction = request.Content(p, "content", false)
}

func chatMessage(conv *request.Conversation, m *fields.Object, calls *request.Ledger) {
	if m == nil {
		return
	}
	switch m.Text("role") {
	case "system", "developer":
		conv.Developer(request.Content(m, "content", false))
	case "user":
		if why := calls.Waiting(); why != "" {
			m.Value().Invalid(": %s", why)
		}
		request.NeedContent(m)
		conv.Messages = append(conv.Messages, session.User(request.Content(m, "content", false)))
	case "assistant":
		chatAssistant(conv, m, calls)
	case "tool":
		id := m.Text("tool_call_id")
		if id == "" {
			m.Get("tool_call_id").Missing()
		} else if !calls.Answer(id) && !conv.IsAwaited(id) {
			m.Get("tool_call_id").Invalid(": no call with the id %q came before this result", id)
		}
		conv.Result(id, m.Text("name"), request.Content(m, "content", true))
	case "function":
		readFunctionResult(conv, m, calls)
	case "":
		m.Get("role").Missing()
	default:
		if !m.IsPast() {
			m.Get("role").MustBe("one of [system developer user assistant tool function]")
		}
	}
}

// chatAssistant splits an earlier turn: reasoning, text and calls are separate messages in Harmony.
// Text before calls is a preamble, text alone the answer.
func chatAssistant(conv *request.Conversation, m *fields.Object, ledger *request.Ledger) {
	conv.Add(session.AssistantReasoning, reasoningOf(m))
	text := request.Content(m, "content", false)
	if text == "" {
		text = m.Text("refusal")
	}
	var calls []fields.Value
	if m.Has("tool_calls") {
		calls = conv.Calls(m.Get("tool_calls"))
	}
	if len(calls) == 0 && m.Has("function_call") {
		conv.Add(session.AssistantCommentary, text)
		readFunctionCall(conv, m, ledger)
		return
	}
	if len(calls) == 0 {
		conv.Add(session.AssistantAnswer, text)
		return
	}
	conv.Add(session.AssistantCommentary, text)
	for _, v := range calls {
		call := v.Object()
		f := call.Object("function")
		if f == nil { // a custom tool's call
			f = call.Object("custom")
		}
		id := call.Text("id")
		if kind := call.Text("type"); f == nil && kind != "" && id != "" && m.IsPast() {
			conv.AddForeign(id, kind, call)
			continue
		}
		if f == nil {
			call.Get("function").Missing()
			return
		}
		if id == "" {
			call.Get("id").Missing()
		}
		ledger.Call(id)
		request.ReadCall(conv, f, id)
	}
}

func (r *chatRequest) readFunctions(o *fields.Object, name string) {
	offer := &r.offer
	if r.functions = o.Has(name); !r.functions {
		if o.Has("function_call") {
			o.Get("function_call").Invalid(" needs functions")
		}
		return
	}
	if o.Has("tools") || o.Has("tool_choice") {
		o.Get(name).Invalid(" is the deprecated form of tools: only one of both can be given")
	}
	for _, v := range offer.List(o, name) {
		offer.Functions = append(offer.Functions, tools.ReadFunction(v.Object()))
	}
	switch v := o.Get("function_call"); v.Kind() {
	case jsondoc.Null:
	case jsondoc.String:
		if how := v.Text(); how != "auto" && how != "none" {
			v.MustBe(`"auto", "none" or an object with a name`)
		} else {
			offer.Mode(v, how)
		}
	default:
		offer.Name(v, v.Object().Text("name"))
	}
}

func readFunctionCall(conv *request.Conversation, m *fields.Object, ledger *request.Ledger) {
	call := m.Object("function_call")
	if call == nil {
		return
	}
	ledger.Function, ledger.Path = call.Text("name"), call.Value().Path
	ledger.Call(ledger.Path)
	request.ReadCall(conv, call, ledger.Path)
}

func readFunctionResult(conv *request.Conversation, m *fields.Object, ledger *request.Ledger) {
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
	conv.Result(ledger.Path, name, request.Content(m, "content", true))
}

// reasoningOf finds the reasoning of an assistant message of chat completions.
func reasoningOf(o *fields.Object) string {
	for _, holder := range []*fields.Object{o, o.Object("provider_specific_fields")} {
		for _, name := range []string{"reasoning", "reasoning_content"} {
			if v := holder.Get(name); v.Kind() == jsondoc.String {
				return v.Text()
			}
		}
	}
	// the Agents SDK for JavaScript puts it on a text part, others on a part of a separate type
	if v := o.Get("content"); v.Kind() == jsondoc.Array {
		for _, part := range v.List() {
			if part.Kind() != jsondoc.Object {
				continue
			}
			for _, name := range []string{"reasoning_content", "thinking", "reasoning"} {
				if r := part.Object().Get(name); r.Kind() == jsondoc.String {
					return r.Text()
				}
			}
		}
	}
	return ""
}
