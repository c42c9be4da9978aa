// POST /v1/completions: what a request asks for.

package completions

import (
	"bytes"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

const mostTexts = 256

// textDefault is the number of tokens if a request names none: OpenAI's default.
const textDefault = 16

type request struct {
	answer.ChoicesRequest
	prompts []textPrompt
	shown   int // choices of each prompt that the answer has: the best of n
	echo    bool
	// vLLM's prompt_logprobs was asked for
	promptLogprobs bool
	names          bool // vLLM's: logprobs have token_id:N in place of texts
}

// textPrompt is one prompt. text is the client's own, "" where it sent ids.
type textPrompt struct {
	text string
	ids  []int32
}

// shown is what echo repeats. Ids are repeated as text, without the names of special tokens.
func (p textPrompt) shown() string {
	if p.text != "" {
		return p.text
	}
	var ordinary []int32
	for _, id := range p.ids {
		if id < token.StartOfText {
			ordinary = append(ordinary, id)
		}
	}
	return token.Text(token.Get().Decode(nil, ordinary))
}

// Read reads a request.
func Read(o *answer.Object) (*answer.Request, answer.Form) {
	r := &request{ChoicesRequest: answer.ReadChoices(o, "prompt"), echo: o.Flag("echo")}
	r.Unpaced = true // it is for measuring
	r.prompts = readPrompts(o)
	r.shown = r.N
	switch r.N = o.Integer("best_of", 1, answer.MaxChoices, r.N); {
	case r.N < r.shown:
		o.Get("best_of").Invalid(" is %d, it must be at least n, which is %d", r.N, r.shown)
	case r.N > r.shown && r.Stream:
		o.Get("best_of").Invalid(" greater than n cannot be streamed: which choices are the best " +
			"is known at the end")
	}
	if len(r.prompts)*r.N > mostTexts {
		o.Complain(answer.Invalid("prompt", "%d prompts of %d choices are more than %d in one "+
			"request", len(r.prompts), r.N, mostTexts))
	}
	if o.Text("suffix") != "" {
		o.Get("suffix").Unsupported("suffix", "the model continues texts and does not fill gaps")
	}
	params := answer.Sampling(o)
	params.Logprobs = -1
	if o.Has("logprobs") {
		r.Logprobs = true
		params.Logprobs = o.Integer("logprobs", 0, sample.MaxTopLogprobs, 0)
	} else if r.N > r.shown {
		params.Logprobs = 0 // to compare the choices by
	}
	turn := session.Request{Params: params, Stop: answer.Stops(o), StopTokens: answer.StopTokens(o),
		Final: r.Format.Final, MaxTokens: textDefault, Allowed: allowedTokens(o),
		KeepSpecial: !o.Boolean("skip_special_tokens", true)}
	r.names = o.Flag("return_tokens_as_token_ids")
	turn.ScorePrompt, turn.PromptTop = r.echo && r.Logprobs, max(params.Logprobs, 0)
	if o.Has("prompt_logprobs") {
		n := o.Integer("prompt_logprobs", 0, sample.MaxTopLogprobs, 0)
		r.promptLogprobs, turn.ScorePrompt = true, true
		turn.PromptTop = max(n, turn.PromptTop)
		if r.Stream {
			o.Get("prompt_logprobs").Unsupported("prompt_logprobs in a stream",
				"ask for the whole answer")
		}
	}
	if o.Has("max_tokens") {
		switch n := o.Integer("max_tokens", -1, 1<<30, 0); {
		case n > 0:
			turn.MaxTokens = n
		case n < 0:
			turn.MaxTokens = 0
		case r.echo || turn.ScorePrompt:
			r.Dry = !turn.ScorePrompt // only the echo
			turn.PromptOnly = turn.ScorePrompt
		default:
			o.Get("max_tokens").Invalid(" must be at least 1, or 0 with echo")
		}
	}
	last := o.Integer("truncate_prompt_tokens", 1, 1<<30, 1<<30)
	for i := range r.prompts {
		p := &r.prompts[i]
		if n := len(p.ids) - last; n > 0 {
			*p = textPrompt{ids: p.ids[n:]}
		}
		turn.Prompt = p.ids
		r.Turns = append(r.Turns, answer.Choices(turn, r.N)...)
	}
	return &r.Request, &form{req: r}
}

// readPrompts reads a text, token ids, or a list of either. Names of special tokens in a text
// become these tokens, as clients that write Harmony themselves expect.
func readPrompts(o *answer.Object) []textPrompt {
	if !o.Need("prompt") {
		return nil
	}
	v := o.Get("prompt")
	if v.Kind() == jsondoc.String {
		return []textPrompt{{v.Text(), v.EncodePrompt(v.Text())}}
	}
	if v.Kind() != jsondoc.Array {
		v.Wrong("a string, an array of strings, of token ids, or of arrays of token ids")
		return nil
	}
	flat, most := bytes.IndexByte(v.Raw, '"') < 0 && bytes.IndexByte(v.Raw[1:], '[') < 0, 1024
	if flat {
		most = answer.MostPrompt
	}
	if v.Count(most+1) > most { // each item costs much, so count first
		v.Invalid(" has more than %d items", most)
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

func promptIDs(v answer.Value, list []answer.Value) []int32 {
	ids := answer.IDsOf(list)
	if len(ids) == 0 {
		v.Invalid(" holds no token")
	}
	return ids
}

func allowedTokens(o *answer.Object) []int32 {
	if !o.Has("allowed_token_ids") {
		return nil
	}
	v := o.Get("allowed_token_ids")
	if v.Count(token.VocabSize+1) <= token.VocabSize { // there may be more than other lists have
		if ids := v.TokenIDs(); len(ids) > 0 {
			return ids
		}
	}
	ids := answer.IDsOf(v.List())
	if len(ids) == 0 {
		v.Invalid(" is empty")
	}
	return ids
}
