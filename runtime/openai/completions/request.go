// POST /v1/completions: what a request asks for.

package completions

import (
	"bytes"
	"slices"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/sample"
)

const maxChoices = 256

const defaultMaxTokens = 16

type completionRequest struct {
	request.Draft
	prompts     []textPrompt
	generated   int // choices generated for each prompt, of which the best are sent
	sentChoices int // choices sent for each prompt
	echo        bool
	logprobs    bool
	promptTop   int  // vLLM's prompt_logprobs; -1: none
	idNames     bool // vLLM's: logprobs have token_id:N instead of texts
	keepLast    int  // tokens of a prompt that are used
}

// textPrompt is one prompt. text is the client's own, "" if it sent ids.
type textPrompt struct {
	text string
	ids  []int32
}

// echoText is the text for echo. Ids are decoded, without special tokens.
func (p textPrompt) echoText() string {
	if p.text != "" {
		return p.text
	}
	ordinary := slices.DeleteFunc(slices.Clone(p.ids),
		func(id int32) bool { return id >= token.StartOfText })
	return token.Text(token.Get().Decode(nil, ordinary))
}

func Parameters() []fields.Parameter { return new(completionRequest).parameters() }

func (r *completionRequest) parameters() []fields.Parameter {
	turn := &r.Turn
	return slices.Concat(r.Choices(), r.CommonRows("response_format object"), []fields.Parameter{
		fields.Boolean("echo", false, &r.echo),
		fields.Row("prompt! any", func(o *fields.Object, _ string) { r.prompts = readPrompts(o) }),
		fields.Row("best_of integer 1", r.readBest),
		fields.RefusedText("suffix", "the model continues texts and does not fill gaps"),
		fields.Integer("logprobs", 0, sample.MaxTopLogprobs, -1, &turn.Params.Logprobs),
		fields.Row("allowed_token_ids integers", func(o *fields.Object, _ string) {
			turn.Allowed = allowedTokens(o)
		}),
		fields.Opposite("skip_special_tokens", &turn.KeepSpecial),
		fields.Refused("prompt_embeds", "", "send a text or token ids"),
		fields.Boolean("return_tokens_as_token_ids", false, &r.idNames),
		fields.Integer("prompt_logprobs", 0, sample.MaxTopLogprobs, -1, &r.promptTop).WithoutDoc(),
		fields.Row("max_tokens integer 0", r.readLimit), // read after echo and the logprobs
		fields.Integer("truncate_prompt_tokens", 1, 1<<30, 1<<30, &r.keepLast),
		fields.Row("metadata", func(o *fields.Object, _ string) { request.Metadata(o) }),
	}, r.Sampling())
}

func Read(o *fields.Object) (*answer.Request, answer.Form) {
	r := &completionRequest{Draft: request.NewDraft("prompt", 0)}
	r.Unpaced = true // it is for measuring
	fields.Read(o, r.parameters())
	r.sentChoices, r.N = r.N, r.generated
	if len(r.prompts)*r.N > maxChoices {
		o.AddFault(fields.Invalid("prompt", "%d prompts of %d choices are more than %d in one "+
			"request", len(r.prompts), r.N, maxChoices))
	}
	turn := &r.Turn
	if r.logprobs = turn.Params.Logprobs >= 0; !r.logprobs && r.N > r.sentChoices {
		turn.Params.Logprobs = 0 // to compare the choices
	}
	if r.promptTop >= 0 && r.Stream {
		o.Get("prompt_logprobs").Unsupported("prompt_logprobs in a stream",
			"ask for the whole answer")
	}
	turn.ScorePrompt = r.scoresPrompt()
	turn.PromptTop = max(turn.Params.Logprobs, r.promptTop, 0)
	turn.Final = r.Format.Final
	for i := range r.prompts {
		p := &r.prompts[i]
		if n := len(p.ids) - r.keepLast; n > 0 {
			*p = textPrompt{ids: p.ids[n:]}
		}
		turn.Prompt = p.ids
		r.Turns = append(r.Turns, request.Choices(*turn, r.N)...)
	}
	return &r.Request, &form{req: r}
}

// scoresPrompt tells whether the prompt's tokens get logprobs too.
func (r *completionRequest) scoresPrompt() bool {
	return r.echo && r.Turn.Params.Logprobs >= 0 || r.promptTop >= 0
}

func (r *completionRequest) readBest(o *fields.Object, name string) {
	switch r.generated = o.Integer(name, 1, request.MaxChoices, r.N); {
	case r.generated < r.N:
		o.Get(name).Invalid(" is %d, it must be at least n, which is %d", r.generated, r.N)
	case r.generated > r.N && r.Stream:
		o.Get(name).Invalid(" greater than n cannot be streamed: which choices are the best is " +
			"known at the end")
	}
}

func (r *completionRequest) readLimit(o *fields.Object, name string) {
	r.Turn.MaxTokens = defaultMaxTokens
	if !o.Has(name) {
		return
	}
	switch n := o.Integer(name, -1, 1<<30, 0); {
	case n > 0:
		r.Turn.MaxTokens = n
	case n < 0:
		r.Turn.MaxTokens = 0
	case r.echo || r.scoresPrompt():
		r.Dry = !r.scoresPrompt() // only the echo
		r.Turn.PromptOnly = r.scoresPrompt()
	default:
		o.Get(name).Invalid(" must be at least 1, or 0 with echo")
	}
}

// readPrompts reads a text, token ids, or a list of either. Names of special tokens in a text
// become these tokens, as clients that write Harmony themselves expect.
func readPrompts(o *fields.Object) []textPrompt {
	if !o.Need("prompt") {
		return nil
	}
	v := o.Get("prompt")
	if v.Kind() == jsondoc.String {
		return []textPrompt{{v.Text(), v.EncodePrompt(v.Text())}}
	}
	if v.Kind() != jsondoc.Array {
		v.WrongType("a string, an array of strings, of token ids, or of arrays of token ids")
		return nil
	}
	flat, limit := bytes.IndexByte(v.Raw, '"') < 0 && bytes.IndexByte(v.Raw[1:], '[') < 0, 1024
	if flat {
		limit = fields.MaxPrompt
	}
	if v.Count(limit+1) > limit { // each item costs much, so count first
		v.Invalid(" has more than %d items", limit)
		return nil
	}
	if flat {
		if ids := v.TokenIDs(); len(ids) > 0 {
			return []textPrompt{{ids: ids}}
		}
	}
	list := v.List()
	if len(list) == 0 {
		v.Invalid(" is an empty array")
		return nil
	}
	var prompts []textPrompt
	switch list[0].Kind() {
	case jsondoc.String:
		for _, p := range list {
			prompts = append(prompts, textPrompt{p.Text(), p.EncodePrompt(p.Text())})
		}
	case jsondoc.Array:
		for _, p := range list {
			prompts = append(prompts, textPrompt{ids: promptIDs(p, p.List())})
		}
	default:
		prompts = append(prompts, textPrompt{ids: promptIDs(v, list)})
	}
	return prompts
}

func promptIDs(v fields.Value, list []fields.Value) []int32 {
	ids := fields.IDsOf(list)
	if len(ids) == 0 {
		v.Invalid(" holds no token")
	}
	return ids
}

func allowedTokens(o *fields.Object) []int32 {
	if !o.Has("allowed_token_ids") {
		return nil
	}
	v := o.Get("allowed_token_ids")
	if v.Count(token.VocabSize+1) <= token.VocabSize { // may be long
		if ids := v.TokenIDs(); len(ids) > 0 {
			return ids
		}
	}
	ids := fields.IDsOf(v.List())
	if len(ids) == 0 {
		v.Invalid(" is empty")
	}
	return ids
}
