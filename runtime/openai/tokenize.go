// POST /tokenize and /detokenize, in vLLM's shapes: for tools that count a prompt before they send
// it.

package openai

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/chat"
	"github.com/ossrun/ossrun/runtime/openai/fields"
)

// tokenize answers with the ids of a prompt, or of a conversation as it would be rendered.
func (p *port) tokenize(e *answer.Exchange, r *http.Request, o *fields.Object) (
	any, *fields.Fault) {
	runner, err := p.driver.FindModel(r.Context(), e, o.Text("model"))
	if err != nil {
		return nil, answer.Unavailable(err)
	}
	strs := o.Flag("return_token_strs")
	var ids []int32
	var f *fields.Fault
	if o.Has("messages") {
		if req := chat.Parse(o, p.MaxReasoning); o.Fault() == nil {
			ids, f = p.driver.RenderPrompt(r.Context(), e, &req.Request)
		}
	} else if o.Need("prompt") {
		// a prompt gets no leading token, whatever add_special_tokens is
		ids = o.Get("prompt").Encode(o.Text("prompt"))
	}
	if f = cmp.Or(f, o.Fault()); f == nil {
		writeTokens(e, ids, runner.ContextLength(), strs)
	}
	return nil, f
}

// writeTokens streams the answer, which may be many times longer than the text.
func writeTokens(e *answer.Exchange, ids []int32, maxLen int, strs bool) {
	w := newPieceWriter(e)
	list := func(name string, item func(b []byte, id int32) []byte) {
		w.b = append(append(append(w.b, `,"`...), name...), `":[`...)
		for i, id := range ids {
			if i > 0 {
				w.b = append(w.b, ',')
			}
			w.b = item(w.b, id)
			w.send(piece)
		}
		w.b = append(w.b, ']')
	}
	w.b = fmt.Appendf(w.b, `{"count":%d,"max_model_len":%d`, len(ids), maxLen)
	list("tokens", func(b []byte, id int32) []byte { return strconv.AppendInt(b, int64(id), 10) })
	if strs {
		list("token_strs", func(b []byte, id int32) []byte {
			return jsondoc.Quote(b, token.Text(token.Get().TokenBytes(id)))
		})
	} else {
		w.b = append(w.b, `,"token_strs":null`...)
	}
	w.b = append(w.b, "}\n"...)
	w.send(0)
}

// writeText streams the text of ids, which may be twenty times longer than their numbers.
func writeText(e *answer.Exchange, ids []int32) {
	w := newPieceWriter(e)
	var text token.StreamDecoder
	add := func(s string) {
		from := len(w.b)
		w.b = jsondoc.Quote(w.b, s)
		w.b = append(w.b[:from], w.b[from+1:len(w.b)-1]...) // one pair of quotes surrounds all
		w.send(piece)
	}
	w.b = append(w.b, `{"prompt":"`...)
	for _, id := range ids {
		add(text.Push(id))
	}
	add(text.Flush())
	w.b = append(w.b, "\"}\n"...)
	w.send(0)
}

// piece is how much of a long answer is written at once.
const piece = 64 << 10

// pieceWriter writes a JSON answer in pieces.
type pieceWriter struct {
	b       []byte // not written yet
	e       *answer.Exchange
	control *http.ResponseController
}

func newPieceWriter(e *answer.Exchange) *pieceWriter {
	e.Header().Set("Content-Type", "application/json")
	return &pieceWriter{make([]byte, 0, piece+1024), e, // and room for a token
		http.NewResponseController(e)}
}

// send writes the buffer if it has at least least bytes.
func (w *pieceWriter) send(threshold int) {
	if len(w.b) >= threshold {
		_ = w.control.SetWriteDeadline(time.Now().Add(answer.WriteTimeout)) // best effort
		_, _ = w.e.Write(w.b)
		w.b = w.b[:0]
	}
}

func (p *port) detokenize(e *answer.Exchange, _ *http.Request, o *fields.Object) (
	any, *fields.Fault) {
	o.Need("tokens")
	ids := fields.IDsOf(o.List("tokens"))
	if o.Fault() == nil {
		writeText(e, ids)
	}
	return nil, o.Fault()
}
