// POST /v1/responses: the request.

package responses

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

type responseRequest struct {
	request.Draft
	in       inputReader          // until record
	conv     request.Conversation // the full history, without the request's instructions
	input    []json.RawMessage    // the items of the full history
	ownItems []json.RawMessage    // those of the request itself

	source       func()              // see record; nil: it was called
	conversation string              // id, "": none
	previous     string              // id of the response that it continues
	approved     *tools.ApprovedCall // to be run first; nil: none
	compactAt    int                 // see readCompaction
	truncate     bool                // drop the oldest messages until the conversation fits

	offer     tools.Offer // while it is read
	names     map[string]tools.ClientName
	hosted    *tools.HostedChoice // the tool that must be called first; nil: none
	builtins  []tools.Requested
	tools     []*tools.Tool // of the turn, once it is started
	mostCalls int           // of tools; 0: the session's own bound

	memory *Memory // of its WebSocket connection; nil: it came by POST

	response     response // the echo of the request
	store        bool
	include      []string
	showMessages bool   // of the prompt and the answer
	topLogprobs  int    // alternatives of each token with logprobs
	summary      string // the requested kind; "": none

	instructions, cacheKey, safety string // echoed
}

func Parameters() []fields.Parameter { return new(responseRequest).parameters(nil) }

func (r *responseRequest) parameters(p *API) []fields.Parameter {
	echo := &r.response
	return slices.Concat(r.CommonRows("text object"), []fields.Parameter{
		// whether the oldest messages of an overlong conversation are dropped
		fields.Row("truncation auto|disabled", func(o *fields.Object, name string) {
			how := o.Text(name)
			if r.truncate = how == "auto"; !r.truncate && how != "" && how != "disabled" {
				o.Get(name).MustBe("auto or disabled")
			}
		}),
		fields.Row("context_management objects", r.readCompaction),
		fields.Row("background boolean", r.readBackground),
		fields.Refused("prompt", "", "send its text in instructions or input"),
		fields.Integer("max_tool_calls", 1, math.MaxInt32, 0, &r.mostCalls),
	}, r.Sampling(), []fields.Parameter{
		fields.Integer("top_logprobs", 0, sample.MaxTopLogprobs, 0, &r.topLogprobs),
		fields.Row("include strings", r.readInclude), // read after top_logprobs
		fields.Opposite("generate", &r.Turn.PromptOnly),
		fields.Refused("include_reasoning", "true", "leave the items of reasoning out yourself"),
		fields.Row("reasoning object", r.readSummary).WithMembers(request.ReasoningMembers...),
		fields.Text("instructions", &r.instructions),
		fields.Row("previous_response_id string", r.readPrevious),
		fields.Row("previous_input_messages objects", r.readMessages), // vLLM's
		fields.Row("conversation any", r.readConversation),            // read after the two
		fields.Row("input any", r.readInput),                          // read after these
		fields.Row("tools objects", func(o *fields.Object, _ string) { // the input has more
			r.offer = tools.Read(o, tools.Responses, r.itemTools(o)...)
			builtins, ignored := p.tools.ReadRequested(o, &r.offer, true)
			r.builtins, r.Ignored = builtins, append(r.Ignored, ignored...)
		}), fields.Row("tool_choice any", nil),
		fields.Boolean("parallel_tool_calls", true, &echo.ParallelToolCalls),
		fields.Text("prompt_cache_key", &r.cacheKey),
		fields.Boolean("enable_response_messages", false, &r.showMessages),
		fields.Text("safety_identifier", &r.safety),
	}, r.ConversationRows("max_output_tokens integer -1"), []fields.Parameter{
		fields.Row("user any", func(o *fields.Object, name string) { echo.User = o.Text(name) }),
		fields.Row("metadata object", func(o *fields.Object, _ string) {
			echo.Metadata = request.Metadata(o)
		})})
}

// parse checks a request; the store resolves previous_response_id and item references.
func (p *API) parse(o *fields.Object) *responseRequest {
	r := &responseRequest{Draft: request.NewDraft("input", p.MaxReasoning)}
	r.memory, _ = o.Ctx().Value(memoryKey{}).(*Memory)
	r.in = inputReader{conv: &r.conv, store: p.store, requests: map[string]bool{}}
	fields.Read(o, r.parameters(p))
	if r.Progress = r.Stream; r.memory != nil {
		r.Stream, r.NDJSON = true, true // each line is a message
	}
	if r.store = !r.Turn.InMemory; r.store {
		r.Turn.Pages = &kv.PageLog{}
	}
	r.Start = r.starter(p)
	r.source = func() {
		if r.store || r.conversation != "" || r.memory != nil {
			r.ownItems = recordInput(o, &r.in)
			r.input = append(r.input[:len(r.input):len(r.input)], r.ownItems...)
		}
	}
	r.Turn.Messages = r.conv.Messages
	r.Instruct(r.conv.Instructions(r.instructions))
	r.offer.ApplyTo(&r.Turn)
	r.Turn.Persist = r.store
	r.Turns = []session.Request{r.Turn}
	r.echo(o)
	r.names, r.hosted, r.offer = r.offer.ClientNames(), r.offer.Hosted, tools.Offer{}
	return r
}

func (r *responseRequest) readBackground(o *fields.Object, name string) {
	if r.response.Background = o.Flag(name); r.response.Background && r.Turn.InMemory {
		o.Get(name).Invalid(" needs store to be true: the response would be lost")
	} else if r.response.Background && r.memory != nil {
		o.Get(name).Invalid(" must be false on a WebSocket; send a background response with POST")
	}
}

// readPrevious puts the conversation of a stored response before the input.
func (r *responseRequest) readPrevious(o *fields.Object, name string) {
	if o.Has(name) && o.Has("conversation") {
		o.ReplaceFault(fields.Invalid("conversation", "conversation and previous_response_id "+
			"cannot both be given"))
		return
	}
	if r.previous = o.Text(name); r.previous == "" {
		return
	}
	r.in.hasHistory = true
	previous, f := previousResponse(r.in.store, r.memory.key(r.previous), r.previous)
	if f != nil {
		o.ReplaceFault(f)
		return
	}
	r.conv, r.input = previous.Conv, append(previous.Input, previous.output()...)
	r.in.openRequests(fields.StoredValues(o.Ctx(), previous.output(), name), o)
}

// readMessages puts messages in Harmony's form, as enable_response_messages gives them, before the
// input. The request's own instructions replace those of the system and the developer.
func (r *responseRequest) readMessages(o *fields.Object, name string) {
	for _, v := range o.List(name) {
		var m harmony.Message
		err := json.Unmarshal(v.Raw, &m)
		isOther := func(c harmony.Content) bool { return c.Type != harmony.KindText }
		switch isTool := m.Role == harmony.RoleTool; {
		case err == nil && (m.Role == harmony.RoleSystem || m.Role == harmony.RoleDeveloper):
			continue
		case err != nil || slices.ContainsFunc(m.Content, isOther) || isTool && m.Name == "":
			v.Invalid(" must be a message of text in Harmony's form")
			continue
		case isTool:
			m = m.WithChannel(harmony.ChannelCommentary).WithRecipient("assistant")
		}
		r.conv.Messages = append(r.conv.Messages, session.Message{Message: m})
	}
}

func (r *responseRequest) readInput(o *fields.Object, _ string) {
	r.Ignored = append(r.Ignored, r.in.read(o)...)
	if id := r.conv.Unmatched; r.memory != nil && r.previous != "" && id != "" {
		o.AddFault(fields.Invalid("input", "no tool call has the call_id %q of its output", id))
	}
	r.approved = r.in.approved
	if last := r.conv.Last(); r.approved != nil && last.CallID != r.approved.ID {
		o.AddFault(fields.Invalid("input", "the approved call %s must be run before anything "+
			"else is said: send the answer alone", r.approved.Name))
	}
}

// starter starts the turn with the requested tools, and a conversation that fits.
func (r *responseRequest) starter(p *API) answer.Starter {
	return func(ctx context.Context, a *answer.Answer, turn session.Request) (session.Turn, error) {
		plain := turn
		p.offers.apply(a.Exchange.Client, r.cacheKey, &turn, r.builtins)
		runner := a.Runner
		dropped := 0
		if r.truncate {
			runner = withTruncation(runner, &dropped)
		}
		if r.compactAt != 0 && r.approved == nil {
			runner = withCompaction(runner, p.store, r.compactAt)
		}
		how := tools.Settings{MaxCalls: r.mostCalls, Chosen: r.hosted, Approved: r.approved,
			OwnerBefore: cmp.Or(r.conversation, r.previous), NextOwner: r.nextOwner}
		started, open, err := p.tools.Start(ctx, a, runner, turn, r.builtins, how)
		_, long := errors.AsType[*sched.ContextLengthError](err)
		if long && len(turn.Functions) > len(plain.Functions) { // it may fit as it was sent
			started, open, err = p.tools.Start(ctx, a, runner, plain, r.builtins, how)
		}
		if err != nil {
			return nil, err
		}
		r.tools = open
		r.keepInput()
		if dropped > 0 {
			a.Exchange.SetHeader(TruncatedHeader, strconv.Itoa(dropped)+
				" of the oldest messages do not fit into the context and were skipped")
		}
		return started, nil
	}
}

// keepInput completes input, ownItems and the echo of the tools, which may be large, once the
// responseRequest is sure to be answered. Then it releases the request's body.
func (r *responseRequest) keepInput() {
	if source := r.source; source != nil {
		source()
		r.source, r.in = nil, inputReader{}
	}
}

// nextOwner is the next owner of the response's tools.
func (r *responseRequest) nextOwner() string {
	if r.conversation == "" && !r.store && r.memory == nil {
		return ""
	}
	return cmp.Or(r.conversation, r.response.ID)
}

// echo fills the response, before it is generated, with the request's parameters.
func (r *responseRequest) echo(o *fields.Object) {
	params, echo := r.Turn.Params, &r.response
	echo.Object, echo.Status, echo.ServiceTier = "response", "in_progress", "default"
	echo.Instructions = fields.OrNull(r.instructions)
	echo.PreviousResponseID = fields.OrNull(r.previous)
	echo.PromptCacheKey = fields.OrNull(r.cacheKey)
	echo.Reasoning = reasoningSettings{cmp.Or(r.EffortName, r.Turn.Effort),
		fields.OrNull(r.summary)}
	echo.SafetyIdentifier = fields.OrNull(r.safety)
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
func (r *responseRequest) readSummary(o *fields.Object, name string) {
	reasoning := o.Object(name)
	for _, name := range []string{"summary", "generate_summary"} {
		switch how := reasoning.Text(name); how {
		case "":
		case "auto", "concise", "detailed":
			r.summary = how
			return
		default:
			reasoning.Get(name).MustBe("one of auto, concise, detailed")
		}
	}
}

// Values of include that change an answer.
const (
	codeOutputs    = "code_interpreter_call.outputs"
	searchSources  = "web_search_call.action.sources"
	searchResults  = "web_search_call.results"
	outputLogprobs = "message.output_text.logprobs"
)

// includable are the values of include. Some never occur here, such as the results of a search in
// files; they are accepted since agents send them all.
var includable = []string{"file_search_call.results", searchResults, searchSources,
	"message.input_image.image_url", "computer_call_output.output.image_url", codeOutputs,
	"reasoning.encrypted_content", outputLogprobs}

func (r *responseRequest) readInclude(o *fields.Object, name string) {
	for _, v := range o.List(name) {
		if r.include = append(r.include, v.Text()); !slices.Contains(includable, v.Text()) {
			v.MustBe("one of " + strings.Join(includable, ", "))
		}
	}
	if r.topLogprobs > 0 || slices.Contains(r.include, outputLogprobs) {
		r.Turn.Params.Logprobs = r.topLogprobs
	}
}

// previousResponse is the response with this id, whose record has the key.
func previousResponse(store records.Store, key, id string) (storedResponse, *fields.Fault) {
	previous, ok := getResponse(store, key)
	switch {
	case !ok:
		return previous, fields.Refusal(http.StatusBadRequest, "previous_response_id",
			"previous_response_not_found", "Previous response with id '"+id+"' not found.")
	case previous.running():
		return previous, fields.Invalid("previous_response_id", "the previous response %q is "+
			"still being written; wait until it has ended", id)
	}
	return previous, nil
}
