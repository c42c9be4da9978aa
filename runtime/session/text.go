// Turns without a conversation: a prompt of tokens that is continued as it is. Nothing is rendered,
// nothing is masked but what Request.Final holds, and the tokens are text, not Harmony.

package session

import (
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/sched"
)

// continueText submits Request.Prompt.
func (t *turn) continueText() error {
	r := sched.Request{Prompt: t.prompt, Params: t.req.Params, MaxTokens: t.req.MaxTokens,
		Stop: []int32{token.Return, token.Call, token.EndOfText}}
	if t.req.Final != nil {
		r.Constraint = grammar.NewText(t.req.Final)
	}
	stream, err := t.model.submit(t.ctx, r)
	if err != nil {
		return err
	}
	t.stream = stream
	return nil
}

// acceptText takes one token of a text. Special tokens have no text.
func (t *turn) acceptText(tok sched.Token) {
	t.tokens = append(t.tokens, tok.ID)
	t.usage.Completion++
	if tok.ID < token.StartOfText {
		if t.req.Params.Logprobs >= 0 {
			t.waiting = append(t.waiting, t.logprob(tok))
		}
		shown, met := t.stop.Push(t.decoder.Push(tok.ID))
		t.emitAnswer(shown)
		t.stopAt(met)
	}
	t.endLoop(tok.ID)
}

// endText is called when the stream of a text has no more tokens.
func (t *turn) endText() {
	shown, met := t.stop.Push(t.decoder.Flush())
	t.emitAnswer(shown)
	if t.stopAt(met); t.ended {
		return
	}
	t.emitAnswer(t.stop.Flush())
	t.finish(t.stream.Finish(), nil) // stop or length: end() has handled the others
}
