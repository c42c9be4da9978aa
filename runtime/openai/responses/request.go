// POST /v1/responses: what a request asks for.

package responses

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

type request struct {
	answer.Request
	wanted       []tools.Wanted
	hosted       *tools.Hosted // the one that must be called first; nil: none
	tools        []*tools.Tool // of the turn, once it is started
	names        map[string]tools.Shown
	outputs      bool   // show what code has printed
	summary      string // the kind that is asked for; "": none
	store        bool
	input        []json.RawMessage   // the items of the whole history
	said         []json.RawMessage   // those of the request itself
	source       func()              // see record; nil: it was called
	conversation string              // id, "": none
	previous     string              // id of the response that it goes on from
	approved     *session.Call       // to be run first; nil: none
	compactAt    int                 // see readCompaction
	truncate     bool                // drop the oldest messages until the conversation fits
	talk         answer.Conversation // the whole history, instructions of the request left out
	response     response            // what it echoes
}

// parse checks a request; the store answers for previous_response_id and item references.
func (p *API) parse(o *answer.Object) *request {
	r := &request{
		Request: answer.ReadRequest(o, "input", o.Object("text").Get("format"), ""),
		store:   o.Boolean("store", true), truncate: readTruncation(o),
		compactAt: readCompaction(o),
	}
	if o.Flag("background") && !r.store {
		o.Get("background").Invalid(" needs store to be true: the response would be lost")
	}
	if o.Has("prompt") {
		o.Get("prompt").Unsupported("prompt", "send its text in instructions or input")
	}
	tools := tools.Read(o)
	wanted, ignored := p.tools.Wanted(o, tools, true)
	r.wanted, r.names, r.hosted = wanted, tools.Shown(), tools.Hosted
	r.Start = r.starter(p, wanted, o.Integer("max_tool_calls", 1, math.MaxInt32, 0))
	turn := session.Request{Params: answer.Sampling(o)}
	top, include := o.Integer("top_logprobs", 0, sample.MaxTopLogprobs, 0), includes(o)
	r.outputs = include["code_interpreter_call.outputs"]
	r.summary = summaryWanted(o)
	if top > 0 || include["message.output_text.logprobs"] {
		turn.Params.Logprobs = top
	}
	instructions := o.Text("instructions")
	if o.Has("conversation") && o.Has("previous_response_id") {
		o.Insist(answer.Invalid("conversation", "conversation and previous_response_id cannot "+
			"both be given"))
		return r
	}
	in := inputReader{talk: &r.talk, store: p.Store, requests: map[string]bool{}}
	if previous := o.Text("previous_response_id"); previous != "" {
		in.goesOn, r.previous = true, previous
		before, f := previousResponse(p.Store, previous)
		if f != nil {
			o.Insist(f)
			return r
		}
		r.talk, r.input = before.Talk, append(before.Input, before.output()...)
		said := o.Values(before.output(), "previous_response_id")
		in.openCalls(said)
		in.openRequests(said, o)
	}
	r.readTalk(o, &in)
	r.Ignored = append(ignored, in.read(o)...)
	o.Complain(in.calls.Overdue())
	if last := r.talk.Last(); in.approved != nil && last.CallID != in.approved.ID {
		o.Complain(answer.Invalid("input", "the approved call %s must be run before anything "+
			"else is said: send the answer alone", in.approved.Name))
	}
	r.approved = in.approved
	r.source = func() {
		if r.store || r.conversation != "" {
			r.said = recordInput(o, &in)
			r.input = append(r.input[:len(r.input):len(r.input)], r.said...)
		}
	}
	turn.Messages, turn.Instructions = r.talk.Messages, r.talk.Instructions(instructions)
	r.Fill(&turn, o, p.MaxReasoning, "max_output_tokens")
	tools.Into(&turn)
	r.Turns = []session.Request{turn}
	r.response = r.echo(o, turn, tools)
	return r
}

// starter starts the turn with what the request asks for: tools, and a conversation that fits.
func (r *request) starter(p *API, wanted []tools.Wanted, most int) answer.Starter {
	return func(ctx context.Context, a *answer.Answer, turn session.Request) (session.Turn, error) {
		runner := a.Runner
		dropped := 0
		if r.truncate {
			runner = truncating(runner, &dropped)
		}
		if r.compactAt != 0 && r.approved == nil {
			runner = compacting(runner, p.Store, r.compactAt)
		}
		if r.approved != nil {
			runner = tools.FirstBy(runner, approved(*r.approved))
		}
		started, open, err := p.tools.Start(ctx, a, runner, turn, wanted, tools.Settings{Most: most,
			Chosen: r.hosted, Approved: r.approved, Before: cmp.Or(r.conversation, r.previous),
			Left: r.leaves})
		if err != nil {
			return nil, err
		}
		r.tools = open
		r.record()
		tellDropped(a.Exchange, dropped)
		return started, nil
	}
}

// record completes input, said and the echo of the tools, which may be large, once it is known that
// the request will be answered. Then it lets go of the request's body.
func (r *request) record() {
	if source := r.source; source != nil {
		r.source = nil
		source()
	}
}

// leaves is the owner that this response leaves its tools to.
func (r *request) leaves() string {
	if r.conversation == "" && !r.store {
		return ""
	}
	return cmp.Or(r.conversation, r.response.ID)
}

// echo is the response before it is generated: it repeats what the request asks for.
func (r *request) echo(o *answer.Object, turn session.Request, tools tools.Offer) response {
	echo := response{
		Object: "response", Status: "in_progress", Background: o.Flag("background"),
		Instructions:       answer.OrNull(o.Text("instructions")),
		ParallelToolCalls:  o.Boolean("parallel_tool_calls", true),
		PreviousResponseID: answer.OrNull(o.Text("previous_response_id")),
		PromptCacheKey:     answer.OrNull(o.Text("prompt_cache_key")),
		Reasoning: reasoningSettings{Effort: turn.Effort,
			Summary: answer.OrNull(r.summary)},
		SafetyIdentifier: answer.OrNull(o.Text("safety_identifier")),
		ServiceTier:      "default",
		Store:            r.store,
		Temperature:      turn.Params.Temperature,
		Text:             textSettings{r.Format.Wire, o.Object("text").Text("verbosity")},
		ToolChoice:       cmp.Or(tools.ChoiceEcho, any(tools.Choice)),
		Tools:            tools.ToolsEcho,
		TopLogprobs:      max(turn.Params.Logprobs, 0),
		TopP:             turn.Params.TopP,
		PresencePenalty:  turn.Params.PresencePenalty,
		FrequencyPenalty: turn.Params.FrequencyPenalty,
		Truncation:       "disabled",
		User:             o.Text("user"),
		Metadata:         metadata(o),
		Output:           []outputItem{},
	}
	if r.truncate {
		echo.Truncation = "auto"
	}
	if n := o.Integer("max_tool_calls", 1, math.MaxInt32, 0); n > 0 {
		echo.MaxToolCalls = &n
	}
	if r.conversation != "" {
		echo.Conversation = &struct {
			ID string `json:"id"`
		}{r.conversation}
	}
	if n := turn.MaxTokens; n > 0 {
		echo.MaxOutputTokens = &n
	}
	return echo
}

// summaryWanted reads reasoning.summary, which has an older name.
func summaryWanted(o *answer.Object) string {
	reasoning := o.Object("reasoning")
	for _, name := range []string{"summary", "generate_summary"} {
		switch how := reasoning.Text(name); how {
		case "":
		case "auto", "concise", "detailed":
			return how
		default:
			reasoning.Get(name).Must("one of auto, concise, detailed")
		}
	}
	return ""
}

// includable is what include can ask for. Some of it never comes up here, such as the results of a
// search in files, and is accepted since agents ask for everything.
var includable = []string{"file_search_call.results", "web_search_call.results",
	"web_search_call.action.sources", "message.input_image.image_url",
	"computer_call_output.output.image_url", "code_interpreter_call.outputs",
	"reasoning.encrypted_content", "message.output_text.logprobs"}

func includes(o *answer.Object) map[string]bool {
	found := map[string]bool{}
	for _, v := range o.List("include") {
		what := v.Text()
		if !slices.Contains(includable, what) {
			v.Must("one of " + strings.Join(includable, ", "))
		}
		found[what] = true
	}
	return found
}

// metadata is echoed as it came.
func metadata(o *answer.Object) json.RawMessage {
	if !o.Has("metadata") {
		return json.RawMessage("{}")
	}
	if v := o.Get("metadata"); v.Kind() != jsondoc.Object {
		v.Wrong("an object")
	}
	return slices.Clone(o.Get("metadata").Raw) // it outlives the body
}

// readTruncation tells whether the oldest messages are dropped where the conversation is too long.
func readTruncation(o *answer.Object) bool {
	switch o.Text("truncation") {
	case "", "disabled":
	case "auto":
		return true
	default:
		o.Get("truncation").Must("auto or disabled")
	}
	return false
}

func previousResponse(store session.Store, id string) (storedResponse, *answer.Fault) {
	before, ok := getResponse(store, id)
	switch {
	case !ok:
		return before, answer.Refusal(http.StatusNotFound, "previous_response_id",
			"previous_response_not_found", "Previous response with id '"+id+"' not found.")
	case before.running():
		return before, answer.Invalid("previous_response_id", "the previous response %q is still "+
			"being written; wait until it has ended", id)
	}
	return before, nil
}

type inputReader struct {
	store  session.Store
	talk   *answer.Conversation
	goesOn bool // there is a conversation already, so the input may be absent

	calls     answer.Ledger
	requests  map[string]bool           // ids of requests for approval
	approved  *session.Call             // in the end
	made      map[string]bool           // requests for approval whose calls were made
	answers   map[string]*answer.Object // to requests for approval
	answersOf int                       // items that made and answers are of
	referred  int                       // bytes of items that were referred to
}

// openCalls takes up the calls that a stored response ended in.
func (in *inputReader) openCalls(output []answer.Value) {
	for _, v := range output {
		switch o := v.Object(); o.Text("type") {
		case "function_call", "custom_tool_call":
			in.calls.Call(o.Text("call_id"))
		}
	}
}

func (in *inputReader) read(o *answer.Object) (ignored []string) {
	v := o.Get("input")
	switch v.Kind() {
	case jsondoc.Null:
		if !in.goesOn {
			o.Get("input").Missing()
		}
		return nil
	case jsondoc.String:
		in.calls.UserSpeaks()
		in.talk.Add(session.User, v.Text()) // LM Studio's clients warm up with ""
		return nil
	case jsondoc.Array:
	default:
		v.Wrong("a string or an array of items")
		return nil
	}
	items := v.Messages()
	for i, it := range items {
		if kind := in.appendItem(it, items[i+1:]); kind != "" {
			ignored = append(ignored, kind)
		}
	}
	return ignored
}

func (in *inputReader) item(id string) (json.RawMessage, bool) { return getItem(in.store, id) }

// appendItem appends one item; after is what follows it. It returns the item's type if it was left
// out.
func (in *inputReader) appendItem(v answer.Value, after []answer.Value) (ignored string) {
	o, talk := v.Object(), in.talk
	if o == nil {
		return ""
	}
	switch kind := o.Text("type"); kind {
	case "message", "":
		in.message(o, after)
	case "reasoning":
		talk.Add(session.AssistantReasoning, thoughtOf(o))
	case "function_call", "custom_tool_call":
		id := o.Text("call_id")
		if id == "" {
			o.Get("call_id").Missing()
		}
		in.calls.Call(id)
		answer.ReadCall(talk, o, id)
	case "function_call_output", "custom_tool_call_output":
		id := o.Text("call_id")
		in.calls.Answer(id)
		if _, ok := talk.Called(id); !ok {
			o.Complain(answer.Invalid(o.At("call_id"), "No tool call found for function call "+
				"output with call_id %s.", id))
		}
		talk.Result(id, o.Text("name"), answer.Content(o, "output", true))
	case "item_reference":
		id := o.Text("id")
		raw, ok := in.item(id)
		if !ok {
			o.Complain(answer.NotFound(o.At("id"), "Item", id))
			return ""
		}
		if in.referred += len(raw); in.referred > answer.StandardBody {
			o.Complain(answer.Refusal(http.StatusBadRequest, v.Path, answer.CodeContextLength,
				fmt.Sprintf("the items that the input refers to have more than %d MiB",
					answer.StandardBody>>20)))
			return ""
		}
		in.appendItem(v.Becomes(raw), after)
	case "code_interpreter_call":
		readCode(talk, o)
	case "web_search_call":
		if !readSearch(talk, o) {
			return kind
		}
	case "mcp_call":
		readServerCall(talk, o)
	case "mcp_list_tools":
	case "mcp_approval_request":
		in.requests[o.Text("id")] = true
		in.readAnswer(o, after)
	case "mcp_approval_response":
		in.checkAnswer(o)
	case "compaction", "compaction_summary":
		text, whole := compactedText(o)
		if text == "" {
			return kind
		}
		s := session.Summary{Text: text}
		if whole && len(talk.Messages) > 0 {
			talk.Replace(goesOn(s, talk.Messages))
		} else {
			talk.Messages = append(talk.Messages, s.Message())
		}
	default:
		return kind
	}
	return ""
}

func (in *inputReader) message(o *answer.Object, after []answer.Value) {
	talk := in.talk
	switch o.Text("role") {
	case "system", "developer":
		talk.Developer(answer.Content(o, "content", false))
	case "user":
		in.calls.UserSpeaks()
		answer.NeedContent(o)
		talk.Messages = append(talk.Messages, session.User(answer.Content(o, "content", false)))
	case "assistant":
		text := answer.Content(o, "content", false)
		if isPreamble(o, after) {
			talk.Add(session.AssistantCommentary, text)
		} else {
			talk.Add(session.AssistantAnswer, text)
		}
	case "":
		o.Get("role").Missing()
	default:
		o.Get("role").Must("one of system, developer, user, assistant")
	}
}

// isPreamble tells whether a message of the assistant came before a call: it says so itself, or a
// call follows.
func isPreamble(o *answer.Object, after []answer.Value) bool {
	if phase := o.Text("phase"); phase != "" {
		return phase == "commentary"
	}
	for _, v := range after {
		switch kind := v.Object().Text("type"); {
		case kind == "reasoning":
		case strings.HasSuffix(kind, "_call"):
			return true
		default:
			return false
		}
	}
	return false
}

func thoughtOf(o *answer.Object) string {
	if text := texts(o.List("content")); text != "" {
		return text
	}
	if text := answer.Unseal(o.Text("encrypted_content")); text != "" {
		return text
	}
	return texts(o.List("summary"))
}

func texts(parts []answer.Value) string {
	var list []string
	for _, p := range parts {
		if t := p.Object().Text("text"); t != "" {
			list = append(list, t)
		}
	}
	return strings.Join(list, "\n\n")
}
