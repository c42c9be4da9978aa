// POST /tokenize and /detokenize, in vLLM's shapes: for tools that count a prompt before they send
// it.

package openai

import (
	"context"
	"net/http"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/session"
)

type tokenized struct {
	Count       int      `json:"count"`
	MaxModelLen int      `json:"max_model_len"`
	Tokens      []int32  `json:"tokens"`
	TokenStrs   []string `json:"token_strs"` // null where nobody asked
}

// tokenize answers with the ids of a prompt, or of a conversation as it would be rendered.
func (p *port) tokenize(e *exchange, r *http.Request) {
	o, f := p.readBody(e, r)
	if f != nil {
		writeFault(e, f)
		return
	}
	runner, err := p.Models.Get(r.Context(), o.text("model"))
	if err != nil {
		writeFault(e, unavailable(err))
		return
	}
	strs, ids := o.flag("return_token_strs"), []int32{}
	if o.has("messages") {
		ids, f = p.promptOf(o)
	} else {
		// no prompt has a token in front, whatever add_special_tokens says
		ids = token.Get().EncodeSpecial(ids, o.text("prompt"), nil)
		if !o.has("prompt") {
			o.complain(missing("prompt"))
		}
		f = o.c.first
	}
	if f != nil {
		writeFault(e, f)
		return
	}
	t := tokenized{Count: len(ids), MaxModelLen: runner.ContextLength(), Tokens: ids}
	if strs {
		t.TokenStrs = []string{}
		for _, id := range ids {
			t.TokenStrs = append(t.TokenStrs, token.Text(token.Get().TokenBytes(id)))
		}
	}
	writeJSON(e, http.StatusOK, t)
}

// promptOf renders the conversation of a chat request.
func (p *port) promptOf(o *object) ([]int32, *fault) {
	req, f := parseChat(o, p.MaxReasoning)
	if f != nil {
		return nil, f
	}
	return p.rendered(o.c.context(), &req.request)
}

// rendered is the prompt of a request's first turn.
func (p *port) rendered(ctx context.Context, req *request) ([]int32, *fault) {
	ids, err := session.Prompt(ctx, p.Store, req.turns[0])
	if err != nil {
		return nil, faultOf(err, req.history)
	}
	return ids, nil
}

func (p *port) detokenize(e *exchange, r *http.Request) {
	o, f := p.readBody(e, r)
	if f != nil {
		writeFault(e, f)
		return
	}
	if !o.has("tokens") {
		o.complain(missing("tokens"))
	}
	var ids []int32
	for _, v := range o.list("tokens") {
		ids = append(ids, v.tokenID())
	}
	if f := o.c.first; f != nil {
		writeFault(e, f)
		return
	}
	writeJSON(e, http.StatusOK, struct {
		Prompt string `json:"prompt"`
	}{token.Text(token.Get().Decode(nil, ids))})
}
