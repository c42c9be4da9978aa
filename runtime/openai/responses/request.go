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
	answer.Draft
	in    inputReader         // until record
	talk  answer.Conversation // the whole history, instructions of the request left out
	input []json.RawMessage   // the items of the whole history
	said  []json.RawMessage   // those of the request itself

	source       func()        // see record; nil: it was called
	conversation string        // id, "": none
	previous     string        // id of the response that it goes on from
	approved     *session.Call // to be run first; nil: none
	compactAt    int           // see readCompaction
	truncate     bool          // drop the oldest messages until the conversation fits

	offer     tools.Offer // while it is read
	names     map[string]tools.Shown
	hosted    *tools.Hosted // the tool that must be called first; nil: none
	wanted    []tools.Wanted
	tools     []*tools.Tool // of the turn, once it is started
	mostCalls int           // of tools; 0: the session's own bound

	response response // what it echoes
	store    bool
	outputs  bool   // show what code has printed
	rivals   int    // of each token with logprobs
	summary  string // the kind that is asked for; "": none

	instructions, cacheKey, safety string // echoed
}

// Parameters are those of a request.
func Parameters() []answer.Parameter { return new(request).parameters(nil) }

func (r *request) parameters(p *API) []answer.Parameter {
	echo := &r.response
	return slices.Concat([]answer.Parameter{answer.Row("text object", r.readText).With("format",
		"verbosity")}, r.Everywhere(), []answer.Parameter{
		answer.Boolean("store", true, &r.store),
		answer.Row("truncation auto|disabled", r.readTruncation),
		answer.Row("context_management objects", r.readCompaction),
		answer.Row("background boolean", r.readBackground),
		answer.Row("prompt", refusePrompt),
		answer.Row("tools objects", func(o *answer.Object, _ string) {
			r.offer = tools.Read(o)
			r.wanted, r.Ignored = p.tools.Wanted(o, r.offer, true)
		}), answer.Row("tool_choice any", nil),
		answer.Integer("max_tool_calls", 1, math.MaxInt32, 0, &r.mostCalls),
	}, r.Sampling(), []answer.Parameter{
		answer.Integer("top_logprobs", 0, sample.MaxTopLogprobs, 0, &r.rivals),
		answer.Row("include strings", r.readInclude), // behind top_logprobs
		answer.Row("reasoning object", r.readSummary).With(answer.ReasoningMembers...),
		answer.Text("instructions", &r.instructions),
		answer.Row("previous_response_id string", r.readPrevious),
		answer.Row("conversation any", r.readTalk), // behind the previous response
		answer.Row("input any", r.readInput),       // behind both
		answer.Boolean("parallel_tool_calls", true, &echo.ParallelToolCalls),
		answer.Text("prompt_cache_key", &r.cacheKey),
		answer.Text("safety_identifier", &r.safety),
	}, r.Talk("max_output_tokens integer -1"), []answer.Parameter{
		answer.Row("user any", func(o *answer.Object, name string) { echo.User = o.Text(name) }),
		answer.Row("metadata object", func(o *answer.Object, name string) {
			answer.CheckMetadata(o, name)
			echo.Metadata = metadata(o, name)
		})})
}

// parse checks a request; the store answers for previous_response_id and item references.
func (p *API) parse(o *answer.Object) *request {
	r := &request{Draft: answer.NewDraft("input", p.MaxReasoning)}
	r.in = inputReader{talk: &r.talk, store: p.Store, requests: map[string]bool{}}
	answer.Read(o, r.parameters(p))
	r.Start = r.starter(p)
	r.source = func() {
		if r.store || r.conversation != "" {
			r.said = recordInput(o, &r.in)
			r.input = append(r.input[:len(r.input):len(r.input)], r.said...)
		}
	}
	r.Turn.Messages = r.talk.Messages
	r.Instruct(r.talk.Instructions(r.instructions))
	r.offer.Into(&r.Turn)
	r.Turns = []session.Request{r.Turn}
	r.echo(o)
	r.names, r.hosted, r.offer = r.offer.Shown(), r.offer.Hosted, tools.Offer{}
	return r
}

func (r *request) readText(o *answer.Object, name string) {
	r.FormatBy(o.Object(name).Get("format"), "")
}

func (r *request) readBackground(o *answer.Object, name string) {
	if r.response.Background = o.Flag(name); r.response.Background && !r.store {
		o.Get(name).Invalid(" needs store to be true: the response would be lost")
	}
}

func refusePrompt(o *answer.Object, name string) {
	if o.Has(name) {
		o.Get(name).Unsupported(name, "send its text in instructions or input")
	}
}

// readPrevious puts the conversation of a stored response in front of the input.
func (r *request) readPrevious(o *answer.Object, name string) {
	if o.Has(name) && o.Has("conversation") {
		o.Insist(answer.Invalid("conversation", "conversation and previous_response_id cannot "+
			"both be given"))
		return
	}
	if r.previous = o.Text(name); r.previous == "" {
		return
	}
	r.in.goesOn = true
	before, f := previousResponse(r.in.store, r.previous)
	if f != nil {
		o.Insist(f)
		return
	}
	r.talk, r.input = before.Talk, append(before.Input, before.output()...)
	said := o.Values(before.output(), name)
	r.in.openCalls(said)
	r.in.openRequests(said, o)
}

func (r *request) readInput(o *answer.Object, _ string) {
	r.Ignored = append(r.Ignored, r.in.read(o)...)
	o.Complain(r.in.calls.Overdue())
	r.approved = r.in.approved
	if last := r.talk.Last(); r.approved != nil && last.CallID != r.approved.ID {
		o.Complain(answer.Invalid("input", "the approved call %s must be run before anything "+
			"else is said: send the answer alone", r.approved.Name))
	}
}

// starter starts the turn with what the request asks for: tools, and a conversation that fits.
func (r *request) starter(p *API) answer.Starter {
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
		started, open, err := p.tools.Start(ctx, a, runner, turn, r.wanted, tools.Settings{
			Most: r.mostCalls, Chosen: r.hosted, Approved: r.approved,
			Before: cmp.Or(r.conversation, r.previous), Left: r.leaves})
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
		source()
		r.source, r.in = nil, inputReader{}
	}
}

// leaves is the owner that this response leaves its tools to.
func (r *request) leaves() string {
	if r.conversation == "" && !r.store {
		return ""
	}
	return cmp.Or(r.conversation, r.response.ID)
}

// echo completes the response before it is generated: it repeats what the request asks for.
func (r *request) echo(o *answer.Object) {
	params, echo := r.Turn.Params, &r.response
	echo.Object, echo.Status, echo.ServiceTier = "response", "in_progress", "default"
	echo.Instructions = answer.OrNull(r.instructions)
	echo.PreviousResponseID = answer.OrNull(r.previous)
	echo.PromptCacheKey = answer.OrNull(r.cacheKey)
	echo.Reasoning = reasoningSettings{r.Turn.Effort, answer.OrNull(r.summary)}
	echo.SafetyIdentifier = answer.OrNull(r.safety)
	echo.Store = r.store
	echo.Text = textSettings{r.Format.Wire, o.Object("text").Text("verbosity")}
	echo.ToolChoice = cmp.Or(r.offer.ChoiceEcho, any(r.offer.Choice))
	echo.Tools = r.offer.ToolsEcho
	echo.TopLogprobs = max(params.Logprobs, 0)
	echo.Temperature, echo.TopP = params.Temperature, params.TopP
	echo.PresencePenalty, echo.FrequencyPenalty = params.PresencePenalty, params.FrequencyPenalty
	echo.Output, echo.Truncation = []outputItem{}, "disabled"
	if r.truncate {
		echo.Truncation = "auto"
	}
	if r.mostCalls > 0 {
		echo.MaxToolCalls = &r.mostCalls
	}
	if r.conversation != "" {
		echo.Conversation = &struct {
			ID string `json:"id"`
		}{r.conversation}
	}
	if r.Turn.MaxTokens > 0 {
		echo.MaxOutputTokens = &r.Turn.MaxTokens
	}
}

// readSummary reads reasoning.summary, which has an older name.
func (r *request) readSummary(o *answer.Object, name string) {
	reasoning := o.Object(name)
	for _, name := range []string{"summary", "generate_summary"} {
		switch how := reasoning.Text(name); how {
		case "":
		case "auto", "concise", "detailed":
			r.summary = how
			return
		default:
			reasoning.Get(name).Must("one of auto, concise, detailed")
		}
	}
}

// includable is what include can ask for. Some of it never comes up here, such as the results of a
// search in files, and is accepted since agents ask for everything.
var includable = []string{"file_search_call.results", "web_search_call.results",
	"web_search_call.action.sources", "message.input_image.image_url",
	"computer_call_output.output.image_url", "code_interpreter_call.outputs",
	"reasoning.encrypted_content", "message.output_text.logprobs"}

func (r *request) readInclude(o *answer.Object, name string) {
	logprobs := r.rivals > 0
	for _, v := range o.List(name) {
		switch what := v.Text(); what {
		case "code_interpreter_call.outputs":
			r.outputs = true
		case "message.output_text.logprobs":
			logprobs = true
		default:
			if !slices.Contains(includable, what) {
				v.Must("one of " + strings.Join(includable, ", "))
			}
		}
	}
	if logprobs {
		r.Turn.Params.Logprobs = r.rivals
	}
}

// metadata is echoed as it came.
func metadata(o *answer.Object, name string) json.RawMessage {
	v := o.Get(name)
	switch v.Kind() {
	case jsondoc.Null:
		return json.RawMessage("{}")
	case jsondoc.Object:
	default:
		v.Wrong("an object")
	}
	return slices.Clone(v.Raw) // it outlives the body
}

// readTruncation reads whether the oldest messages are dropped where the conversation is too long.
func (r *request) readTruncation(o *answer.Object, name string) {
	switch o.Text(name) {
	case "", "disabled":
	case "auto":
		r.truncate = true
	default:
		o.Get(name).Must("auto or disabled")
	}
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
