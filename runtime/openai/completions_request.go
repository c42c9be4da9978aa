// POST /v1/completions: what a request asks for.

package openai

import (
	"bytes"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

const mostTexts = 256

// textDefault is the number of tokens if a request names none: OpenAI's default.
const textDefault = 16

type completionRequest struct {
	choicesRequest
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

func readCompletion(o *object) (*request, form) {
	r := &completionRequest{choicesRequest: readChoices(o, "prompt"), echo: o.flag("echo")}
	r.unpaced = true // it is for measuring
	r.prompts = readPrompts(o)
	r.shown = r.n
	switch r.n = o.integer("best_of", 1, maxChoices, r.n); {
	case r.n < r.shown:
		o.get("best_of").invalid(" is %d, it must be at least n, which is %d", r.n, r.shown)
	case r.n > r.shown && r.stream:
		o.get("best_of").invalid(" greater than n cannot be streamed: which choices are the best " +
			"is known at the end")
	}
	if len(r.prompts)*r.n > mostTexts {
		o.complain(invalid("prompt", "%d prompts of %d choices are more than %d in one request",
			len(r.prompts), r.n, mostTexts))
	}
	if o.text("suffix") != "" {
		o.get("suffix").unsupported("suffix", "the model continues texts and does not fill gaps")
	}
	params := sampling(o)
	params.Logprobs = -1
	if o.has("logprobs") {
		r.logprobs = true
		params.Logprobs = o.integer("logprobs", 0, sample.MaxTopLogprobs, 0)
	} else if r.n > r.shown {
		params.Logprobs = 0 // to compare the choices by
	}
	turn := session.Request{Params: params, Stop: stops(o), StopTokens: stopTokens(o),
		Final: r.format.final, MaxTokens: textDefault, Allowed: allowedTokens(o),
		KeepSpecial: !o.boolean("skip_special_tokens", true)}
	r.names = o.flag("return_tokens_as_token_ids")
	turn.ScorePrompt, turn.PromptTop = r.echo && r.logprobs, max(params.Logprobs, 0)
	if o.has("prompt_logprobs") {
		n := o.integer("prompt_logprobs", 0, sample.MaxTopLogprobs, 0)
		r.promptLogprobs, turn.ScorePrompt = true, true
		turn.PromptTop = max(n, turn.PromptTop)
		if r.stream {
			o.get("prompt_logprobs").unsupported("prompt_logprobs in a stream",
				"ask for the whole answer")
		}
	}
	if o.has("max_tokens") {
		switch n := o.integer("max_tokens", -1, 1<<30, 0); {
		case n > 0:
			turn.MaxTokens = n
		case n < 0:
			turn.MaxTokens = 0
		case r.echo || turn.ScorePrompt:
			r.dry = !turn.ScorePrompt // only the echo
			turn.PromptOnly = turn.ScorePrompt
		default:
			o.get("max_tokens").invalid(" must be at least 1, or 0 with echo")
		}
	}
	last := o.integer("truncate_prompt_tokens", 1, 1<<30, 1<<30)
	for i := range r.prompts {
		p := &r.prompts[i]
		if n := len(p.ids) - last; n > 0 {
			*p = textPrompt{ids: p.ids[n:]}
		}
		turn.Prompt = p.ids
		r.turns = append(r.turns, choices(turn, r.n)...)
	}
	return &r.request, &textForm{req: r}
}

// readPrompts reads a text, token ids, or a list of either. Names of special tokens in a text
// become these tokens, as clients that write Harmony themselves expect.
func readPrompts(o *object) []textPrompt {
	if !o.need("prompt") {
		return nil
	}
	v := o.get("prompt")
	if v.Kind() == jsondoc.String {
		return []textPrompt{{v.text(), v.encodePrompt(v.text())}}
	}
	if v.Kind() != jsondoc.Array {
		v.wrong("a string, an array of strings, of token ids, or of arrays of token ids")
		return nil
	}
	flat, most := bytes.IndexByte(v.Raw, '"') < 0 && bytes.IndexByte(v.Raw[1:], '[') < 0, 1024
	if flat {
		most = mostPrompt
	}
	if v.Count(most+1) > most { // each item costs much, so count first
		v.invalid(" has more than %d items", most)
		return nil
	}
	if flat {
		if ids := v.tokenIDs(); len(ids) > 0 {
			return []textPrompt{{ids: ids}}
		}
	}
	list := v.list()
	if len(list) == 0 {
		v.invalid(" is an empty array")
		return nil
	}
	var prompts []textPrompt
	switch list[0].Kind() {
	case jsondoc.String:
		for _, p := range list {
			prompts = append(prompts, textPrompt{p.text(), p.encodePrompt(p.text())})
		}
	case jsondoc.Array:
		for _, p := range list {
			prompts = append(prompts, textPrompt{ids: promptIDs(p, p.list())})
		}
	default:
		prompts = append(prompts, textPrompt{ids: promptIDs(v, list)})
	}
	return prompts
}

func promptIDs(v value, list []value) []int32 {
	ids := idsOf(list)
	if len(ids) == 0 {
		v.invalid(" holds no token")
	}
	return ids
}

func allowedTokens(o *object) []int32 {
	if !o.has("allowed_token_ids") {
		return nil
	}
	v := o.get("allowed_token_ids")
	if v.Count(token.VocabSize+1) <= token.VocabSize { // there may be more than other lists have
		if ids := v.tokenIDs(); len(ids) > 0 {
			return ids
		}
	}
	ids := idsOf(v.list())
	if len(ids) == 0 {
		v.invalid(" is empty")
	}
	return ids
}
