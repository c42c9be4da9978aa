// POST /v1/responses: what a request asks for.

package openai

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
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

type responsesRequest struct {
	request
	wanted       []wantedTool
	hosted       *hostedChoice // the one that must be called first; nil: none
	tools        []*openTool   // of the turn, once it is started
	names        map[string]shownTool
	outputs      bool   // show what code has printed
	summary      string // the kind that is asked for; "": none
	store        bool
	input        []json.RawMessage // the items of the whole history
	said         []json.RawMessage // those of the request itself
	source       func()            // see record; nil: it was called
	conversation string            // id, "": none
	previous     string            // id of the response that it goes on from
	approved     *session.Call     // to be run first; nil: none
	compactAt    int               // see readCompaction
	truncate     bool              // drop the oldest messages until the conversation fits
	talk         conversation      // the whole history, instructions of the request left out
	response     response          // what it echoes
}

// parse checks a request; the store answers for previous_response_id and item references.
func (p *responsesAPI) parse(o *object) *responsesRequest {
	r := &responsesRequest{
		request: readRequest(o, "input", o.object("text").get("format"), ""),
		store:   o.boolean("store", true), truncate: readTruncation(o),
		compactAt: readCompaction(o),
	}
	if o.flag("background") && !r.store {
		o.get("background").invalid(" needs store to be true: the response would be lost")
	}
	if o.has("prompt") {
		o.get("prompt").unsupported("prompt", "send its text in instructions or input")
	}
	tools := readOffer(o)
	wanted, ignored := p.tools.wanted(o, tools, true)
	r.wanted, r.names, r.hosted = wanted, tools.shown(), tools.hosted
	r.start = r.starter(p, wanted, o.integer("max_tool_calls", 1, math.MaxInt32, 0))
	turn := session.Request{Params: sampling(o)}
	top, include := o.integer("top_logprobs", 0, sample.MaxTopLogprobs, 0), includes(o)
	r.outputs = include["code_interpreter_call.outputs"]
	r.summary = summaryWanted(o)
	if top > 0 || include["message.output_text.logprobs"] {
		turn.Params.Logprobs = top
	}
	instructions := o.text("instructions")
	if o.has("conversation") && o.has("previous_response_id") {
		o.insist(invalid("conversation", "conversation and previous_response_id cannot both be "+
			"given"))
		return r
	}
	in := inputReader{talk: &r.talk, store: p.Store, requests: map[string]bool{}}
	if previous := o.text("previous_response_id"); previous != "" {
		in.goesOn, r.previous = true, previous
		before, f := previousResponse(p.Store, previous)
		if f != nil {
			o.insist(f)
			return r
		}
		r.talk, r.input = before.Talk, append(before.Input, before.output()...)
		said := o.values(before.output(), "previous_response_id")
		in.openCalls(said)
		in.openRequests(said, o)
	}
	r.readTalk(o, &in)
	r.ignored = append(ignored, in.read(o)...)
	o.complain(in.calls.overdue())
	if last := r.talk.last(); in.approved != nil && last.CallID != in.approved.ID {
		o.complain(invalid("input",
			"the approved call %s must be run before anything else is said: "+
				"send the answer alone", in.approved.Name))
	}
	r.approved = in.approved
	r.source = func() {
		if r.store || r.conversation != "" {
			r.said = recordInput(o, &in)
			r.input = append(r.input[:len(r.input):len(r.input)], r.said...)
		}
	}
	turn.Messages, turn.Instructions = r.talk.Messages, r.talk.instructions(instructions)
	r.fill(&turn, o, p.MaxReasoning, "max_output_tokens")
	tools.into(&turn)
	r.turns = []session.Request{turn}
	r.response = r.echo(o, turn, tools)
	return r
}

// starter starts the turn with what the request asks for: tools, and a conversation that fits.
func (r *responsesRequest) starter(p *responsesAPI, wanted []wantedTool, most int) starter {
	return func(ctx context.Context, a *answer, turn session.Request) (session.Turn, error) {
		runner := a.runner
		dropped := 0
		if r.truncate {
			runner = truncating(runner, &dropped)
		}
		if r.compactAt != 0 && r.approved == nil {
			runner = compacting(runner, p.Store, r.compactAt)
		}
		if r.approved != nil {
			runner = firstBy(runner, approved(*r.approved))
		}
		started, open, err := p.tools.start(ctx, a, runner, turn, wanted, toolSettings{most: most,
			chosen: r.hosted, approved: r.approved, before: cmp.Or(r.conversation, r.previous),
			left: r.leaves})
		if err != nil {
			return nil, err
		}
		r.tools = open
		r.record()
		tellDropped(a.exchange, dropped)
		return started, nil
	}
}

// record completes input, said and the echo of the tools, which may be large, once it is known that
// the request will be answered. Then it lets go of the request's body.
func (r *responsesRequest) record() {
	if source := r.source; source != nil {
		r.source = nil
		source()
	}
}

// leaves is the owner that this response leaves its tools to.
func (r *responsesRequest) leaves() string {
	if r.conversation == "" && !r.store {
		return ""
	}
	return cmp.Or(r.conversation, r.response.ID)
}

// echo is the response before it is generated: it repeats what the request asks for.
func (r *responsesRequest) echo(o *object, turn session.Request, tools offer) response {
	echo := response{
		Object: "response", Status: "in_progress", Background: o.flag("background"),
		Instructions:       orNull(o.text("instructions")),
		ParallelToolCalls:  o.boolean("parallel_tool_calls", true),
		PreviousResponseID: orNull(o.text("previous_response_id")),
		PromptCacheKey:     orNull(o.text("prompt_cache_key")),
		Reasoning: reasoningSettings{Effort: turn.Effort,
			Summary: orNull(r.summary)},
		SafetyIdentifier: orNull(o.text("safety_identifier")),
		ServiceTier:      "default",
		Store:            r.store,
		Temperature:      turn.Params.Temperature,
		Text:             textSettings{r.format.wire, o.object("text").text("verbosity")},
		ToolChoice:       cmp.Or(tools.choiceEcho, any(tools.choice)),
		Tools:            tools.toolsEcho,
		TopLogprobs:      max(turn.Params.Logprobs, 0),
		TopP:             turn.Params.TopP,
		PresencePenalty:  turn.Params.PresencePenalty,
		FrequencyPenalty: turn.Params.FrequencyPenalty,
		Truncation:       "disabled",
		User:             o.text("user"),
		Metadata:         metadata(o),
		Output:           []outputItem{},
	}
	if r.truncate {
		echo.Truncation = "auto"
	}
	if n := o.integer("max_tool_calls", 1, math.MaxInt32, 0); n > 0 {
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
func summaryWanted(o *object) string {
	reasoning := o.object("reasoning")
	for _, name := range []string{"summary", "generate_summary"} {
		switch how := reasoning.text(name); how {
		case "":
		case "auto", "concise", "detailed":
			return how
		default:
			reasoning.get(name).must("one of auto, concise, detailed")
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

func includes(o *object) map[string]bool {
	found := map[string]bool{}
	for _, v := range o.list("include") {
		what := v.text()
		if !slices.Contains(includable, what) {
			v.must("one of " + strings.Join(includable, ", "))
		}
		found[what] = true
	}
	return found
}

// metadata is echoed as it came.
func metadata(o *object) json.RawMessage {
	if !o.has("metadata") {
		return json.RawMessage("{}")
	}
	if v := o.get("metadata"); v.Kind() != jsondoc.Object {
		v.wrong("an object")
	}
	return slices.Clone(o.get("metadata").Raw) // it outlives the body
}

// readTruncation tells whether the oldest messages are dropped where the conversation is too long.
func readTruncation(o *object) bool {
	switch o.text("truncation") {
	case "", "disabled":
	case "auto":
		return true
	default:
		o.get("truncation").must("auto or disabled")
	}
	return false
}

func previousResponse(store session.Store, id string) (storedResponse, *fault) {
	before, ok := getResponse(store, id)
	switch {
	case !ok:
		return before, refusal(http.StatusNotFound, "previous_response_id",
			"previous_response_not_found", "Previous response with id '"+id+"' not found.")
	case before.running():
		return before, invalid("previous_response_id", "the previous response %q is still "+
			"being written; wait until it has ended", id)
	}
	return before, nil
}

type inputReader struct {
	store  session.Store
	talk   *conversation
	goesOn bool // there is a conversation already, so the input may be absent

	calls     callLedger
	requests  map[string]bool    // ids of requests for approval
	approved  *session.Call      // in the end
	made      map[string]bool    // requests for approval whose calls were made
	answers   map[string]*object // to requests for approval
	answersOf int                // items that made and answers are of
	referred  int                // bytes of items that were referred to
}

// openCalls takes up the calls that a stored response ended in.
func (in *inputReader) openCalls(output []value) {
	for _, v := range output {
		switch o := v.object(); o.text("type") {
		case "function_call", "custom_tool_call":
			in.calls.call(o.text("call_id"))
		}
	}
}

func (in *inputReader) read(o *object) (ignored []string) {
	v := o.get("input")
	switch v.Kind() {
	case jsondoc.Null:
		if !in.goesOn {
			o.get("input").missing()
		}
		return nil
	case jsondoc.String:
		in.calls.userSpeaks()
		in.talk.add(session.User, v.text()) // LM Studio's clients warm up with ""
		return nil
	case jsondoc.Array:
	default:
		v.wrong("a string or an array of items")
		return nil
	}
	items := v.messages()
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
func (in *inputReader) appendItem(v value, after []value) (ignored string) {
	o, talk := v.object(), in.talk
	if o == nil {
		return ""
	}
	switch kind := o.text("type"); kind {
	case "message", "":
		in.message(o, after)
	case "reasoning":
		talk.add(session.AssistantReasoning, thoughtOf(o))
	case "function_call", "custom_tool_call":
		id := o.text("call_id")
		if id == "" {
			o.get("call_id").missing()
		}
		in.calls.call(id)
		readCall(talk, o, id)
	case "function_call_output", "custom_tool_call_output":
		id := o.text("call_id")
		in.calls.answer(id)
		if _, ok := talk.called(id); !ok {
			o.complain(invalid(o.at("call_id"), "No tool call found for function call output with "+
				"call_id %s.", id))
		}
		talk.result(id, o.text("name"), content(o, "output", true))
	case "item_reference":
		id := o.text("id")
		raw, ok := in.item(id)
		if !ok {
			o.complain(notFound(o.at("id"), "Item", id))
			return ""
		}
		if in.referred += len(raw); in.referred > standardBody {
			o.complain(refusal(http.StatusBadRequest, v.Path, codeContextLength, fmt.Sprintf("the "+
				"items that the input refers to have more than %d MiB", standardBody>>20)))
			return ""
		}
		in.appendItem(v.becomes(raw), after)
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
		in.requests[o.text("id")] = true
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
			talk.replace(goesOn(s, talk.Messages))
		} else {
			talk.Messages = append(talk.Messages, s.Message())
		}
	default:
		return kind
	}
	return ""
}

func (in *inputReader) message(o *object, after []value) {
	talk := in.talk
	switch o.text("role") {
	case "system", "developer":
		talk.developer(content(o, "content", false))
	case "user":
		in.calls.userSpeaks()
		needContent(o)
		talk.Messages = append(talk.Messages, session.User(content(o, "content", false)))
	case "assistant":
		text := content(o, "content", false)
		if isPreamble(o, after) {
			talk.add(session.AssistantCommentary, text)
		} else {
			talk.add(session.AssistantAnswer, text)
		}
	case "":
		o.get("role").missing()
	default:
		o.get("role").must("one of system, developer, user, assistant")
	}
}

// isPreamble tells whether a message of the assistant came before a call: it says so itself, or a
// call follows.
func isPreamble(o *object, after []value) bool {
	if phase := o.text("phase"); phase != "" {
		return phase == "commentary"
	}
	for _, v := range after {
		switch kind := v.object().text("type"); {
		case kind == "reasoning":
		case strings.HasSuffix(kind, "_call"):
			return true
		default:
			return false
		}
	}
	return false
}

func thoughtOf(o *object) string {
	if text := texts(o.list("content")); text != "" {
		return text
	}
	if text := unseal(o.text("encrypted_content")); text != "" {
		return text
	}
	return texts(o.list("summary"))
}

func texts(parts []value) string {
	var list []string
	for _, p := range parts {
		if t := p.object().text("text"); t != "" {
			list = append(list, t)
		}
	}
	return strings.Join(list, "\n\n")
}
