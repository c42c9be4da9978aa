// POST /v1/chat/completions: the request, including functions and function_call, which OpenAI has
// deprecated in favour of tools.
//
// A request in that form is answered in it. Its calls have no ids; a call's place in the request is
// its id. What must stay true: a result belongs to the oldest waiting call of its function.

package chat

import (
	"cmp"
	"encoding/json"
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
	otherName   bool // as reasoning_content
	logprobs    bool
	topLogprobs int // alternatives of each token with logprobs
	offer       tools.Offer
	functions   bool // calls have the deprecated form
	conv        request.Conversation
	store       bool
	// of a stored one: the answer's, and the request's
	metadata, messages json.RawMessage
}

func Parameters() []fields.Parameter { return new(chatRequest).parameters() }

func (r *chatRequest) parameters() []fields.Parameter {
	return slices.Concat(r.Choices(), r.CommonRows("response_format object"), []fields.Parameter{
		fields.Boolean("include_reasoning", true, &r.reasoning),
		fields.Boolean("return_progress", false, &r.Progress),
		fields.Row("reasoning_format", r.readReasoningFormat),
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
		fields.Row("metadata object", func(o *fields.Object, _ string) { request.Metadata(o) }),
	}, r.ConversationRows("max_completion_tokens integer -1", "max_tokens integer -1",
		"n_predict")) // llama.cpp's
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
	if r.store = o.Flag("store"); r.store {
		r.Turn.InMemory = true // so that its deletion leaves no page on the disk
		r.metadata, r.messages = request.Metadata(o), slices.Clone(o.Get("messages").Raw)
	}
	r.Turns = request.Choices(r.Turn, r.N)
	return r
}

func (r *chatRequest) readReasoning(o *fields.Object, name string) {
	r.reasoning = r.reasoning && !o.Object(name).Flag("exclude")
}

// readReasoningFormat reads llama.cpp's name for the form of its own clients, and Groq's.
func (r *chatRequest) readReasoningFormat(o *fields.Object, name string) {
	switch o.Text(name) {
	case "", "parsed":
	case "auto", "deepseek", "deepseek-legacy":
		r.otherName = true
	case "hidden":
		r.reasoning = false
	default:
		o.Get(name).Unsupported(name+" "+o.Text(name), "reasoning is always apart from the answer")
	}
}

func textOnly(o *fields.Object, name string) {
	for _, v := range o.List(name) {
		if m := v.Text(); m != "text" {
			o.Get(name).Unsupported("the modality "+m, "the model writes text only")
		}
	}
}

func (r *chatRequest) readTools(o *fields.Object, _ string) { r.offer = tools.Read(o, "") }

func (r *chatRequest) readMessages(o *fields.Object, _ string) {
	conv := &r.conv
	fields.ReadDated(request.MessagesOf(o), func(_ int, v fields.Value) {
		switch m := v.Object(); m.Text("role") {
		case "tool", "function":
			conv.Result(m.Text("tool_call_id"), m.Text("name"), request.Content(m, "content", true))
		default:
			conv.ReadMessage(m, "[system developer user assistant tool function]", func() {
				chatAssistant(conv, m)
			})
		}
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

// chatAssistant splits an earlier turn: reasoning, text and calls are separate messages in Harmony.
func chatAssistant(conv *request.Conversation, m *fields.Object) {
	conv.Add(session.AssistantReasoning, reasoningOf(m))
	text := cmp.Or(request.Content(m, "content", false), m.Text("refusal"))
	if m.Has("function_call") && len(m.List("tool_calls")) == 0 {
		conv.Add(session.AssistantCommentary, text)
		if call := m.Object("function_call"); call != nil {
			conv.ReadCall(call, call.Value().Path, false)
		}
		return
	}
	conv.ReadAnswer(m, text, false)
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
