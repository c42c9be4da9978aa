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
)

// tokenize answers with the ids of a prompt, or of a conversation as it would be rendered.
func (p *port) tokenize(e *exchange, r *http.Request, o *object) (any, *fault) {
	runner, err := p.Models.Get(r.Context(), o.text("model"))
	if err != nil {
		return nil, unavailable(err)
	}
	strs := o.flag("return_token_strs")
	var ids []int32
	var f *fault
	if o.has("messages") {
		if req := parseChat(o, p.MaxReasoning); o.fault() == nil {
			ids, f = p.driver.rendered(r.Context(), &req.request)
		}
	} else if o.need("prompt") {
		// no prompt has a token in front, whatever add_special_tokens says
		ids = o.get("prompt").encode(o.text("prompt"))
	}
	if f = cmp.Or(f, o.fault()); f == nil {
		writeTokens(e, ids, runner.ContextLength(), strs)
	}
	return nil, f
}

// writeTokens writes the answer piece by piece: there may be many times the text of it.
func writeTokens(e *exchange, ids []int32, most int, strs bool) {
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
	w.b = fmt.Appendf(w.b, `{"count":%d,"max_model_len":%d`, len(ids), most)
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

// writeText writes the text of ids, which may be twenty times as long as their numbers.
func writeText(e *exchange, ids []int32) {
	w := newPieceWriter(e)
	var text token.StreamDecoder
	add := func(s string) {
		from := len(w.b)
		w.b = jsondoc.Quote(w.b, s)
		w.b = append(w.b[:from], w.b[from+1:len(w.b)-1]...) // the quotes are around all of it
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

// pieceWriter writes a JSON answer as it is made.
type pieceWriter struct {
	b       []byte // not written yet
	e       *exchange
	control *http.ResponseController
}

func newPieceWriter(e *exchange) *pieceWriter {
	e.Header().Set("Content-Type", "application/json")
	return &pieceWriter{make([]byte, 0, piece+1024), e, // and room for a token
		http.NewResponseController(e)}
}

// send writes what is there if it is least bytes.
func (w *pieceWriter) send(least int) {
	if len(w.b) >= least {
		_ = w.control.SetWriteDeadline(time.Now().Add(patience)) // or there is none
		_, _ = w.e.Write(w.b)
		w.b = w.b[:0]
	}
}

func (p *port) detokenize(e *exchange, _ *http.Request, o *object) (any, *fault) {
	o.need("tokens")
	ids := idsOf(o.list("tokens"))
	if o.fault() == nil {
		writeText(e, ids)
	}
	return nil, o.fault()
}
