// POST /tokenize and /detokenize, in vLLM's shapes: for tools that count a prompt before they send
// it.

package openai

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/session"
)

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
	strs := o.flag("return_token_strs")
	var ids []int32
	if o.has("messages") {
		ids, f = p.promptOf(o)
	} else {
		// no prompt has a token in front, whatever add_special_tokens says
		if ids = o.get("prompt").encode(o.text("prompt")); !o.has("prompt") {
			o.complain(missing("prompt"))
		}
		f = o.c.first
	}
	if f != nil {
		writeFault(e, f)
		return
	}
	writeTokens(e, ids, runner.ContextLength(), strs)
}

// writeTokens writes the answer piece by piece: there may be many times the text of it.
func writeTokens(e *exchange, ids []int32, most int, strs bool) {
	const piece = 64 << 10
	control := http.NewResponseController(e)
	e.Header().Set("Content-Type", "application/json")
	b := make([]byte, 0, piece+1024) // and room for a token
	send := func(least int) {
		if len(b) >= least {
			_ = control.SetWriteDeadline(time.Now().Add(patience)) // or there is none
			_, _ = e.Write(b)
			b = b[:0]
		}
	}
	list := func(name string, item func(b []byte, id int32) []byte) {
		b = append(append(append(b, `,"`...), name...), `":[`...)
		for i, id := range ids {
			if i > 0 {
				b = append(b, ',')
			}
			b = item(b, id)
			send(piece)
		}
		b = append(b, ']')
	}
	b = fmt.Appendf(b, `{"count":%d,"max_model_len":%d`, len(ids), most)
	list("tokens", func(b []byte, id int32) []byte { return strconv.AppendInt(b, int64(id), 10) })
	if strs {
		list("token_strs", func(b []byte, id int32) []byte {
			return jsondoc.Quote(b, token.Text(token.Get().TokenBytes(id)))
		})
	} else {
		b = append(b, `,"token_strs":null`...)
	}
	b = append(b, "}\n"...)
	send(0)
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
