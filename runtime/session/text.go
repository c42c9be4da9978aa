// Turns without a conversation: a prompt of tokens is continued as text. Nothing is rendered, only
// Request.Final or Request.Allowed is enforced, and the tokens are not read as Harmony.

package session

import (
	"slices"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/sched"
)

func (t *turn) continueText() error {
	r := sched.Request{Prompt: t.prompt, Params: t.req.Params, MaxTokens: t.req.MaxTokens,
		Stop: t.stopTokens(), ScorePrompt: t.req.ScorePrompt, PromptTop: t.req.PromptTop}
	if t.req.PromptOnly {
		r.MaxTokens = 1 // which nobody sees
	}
	switch {
	case t.req.Final != nil && t.req.Allowed != nil:
		return &RequestError{"allowed", "a form and a list of allowed tokens cannot both be held"}
	case t.req.Final != nil:
		r.Constraint = grammar.NewText(t.req.Final)
	case t.req.Allowed != nil:
		r.Constraint = grammar.NewAllowed(t.req.Allowed)
	}
	stream, err := t.model.submit(t.ctx, r)
	if err != nil {
		return err
	}
	t.stream = stream
	return nil
}

func (t *turn) acceptText(tok sched.Token) {
	if t.req.PromptOnly {
		return
	}
	t.tokens = append(t.tokens, tok.ID)
	t.usage.Completion++
	if t.stopToken(tok.ID) {
		return
	}
	text := ""
	switch name, special := token.Get().Special(tok.ID); {
	case tok.ID < token.StartOfText:
		text = t.decoder.Push(tok.ID)
	case t.req.KeepSpecial && special && !slices.Contains(t.stopTokens(), tok.ID):
		text = t.decoder.Flush() + name
	default:
		return
	}
	if t.req.Params.Logprobs >= 0 {
		t.waiting = append(t.waiting, t.logprob(tok))
	}
	shown, met := t.stop.Push(text)
	t.emitAnswer(shown)
	t.stopAt(met)
}

// endText ends the turn when the stream has no more tokens.
func (t *turn) endText() {
	shown, met := t.stop.Push(t.decoder.Flush())
	t.emitAnswer(shown)
	if t.stopAt(met); t.ended {
		return
	}
	t.emitAnswer(t.stop.Flush())
	why := t.stream.Finish() // stop or length: end() has handled the others
	if t.req.PromptOnly {
		why = FinishLength
	}
	t.finish(why, nil)
}
