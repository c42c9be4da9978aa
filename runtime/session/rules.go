// From a Request to the grammar of its turn: what the sampler may choose.
//
// Arguments of a function are held to its parameters. Agents send schemas of every kind, so where they cannot be held they
// are held to a JSON object and Result.Relaxed says so, unless the function is strict: then the request is refused.

package session

import (
	"slices"

	"github.com/ossrun/ossrun/runtime/grammar"
)

// rules makes the grammar of a request; relaxed are the functions whose parameters are not held, and why.
func rules(r Request) (_ grammar.TurnRules, relaxed []string, err error) {
	out := grammar.TurnRules{Python: r.Python, Browser: r.Browser, Choice: r.Choice, Name: r.ChoiceName, Final: r.Final, MaxReasoning: r.MaxReasoning}
	for _, f := range r.Functions {
		rule := grammar.FunctionRule{Name: f.Name}
		if len(f.Parameters) > 0 {
			body, err := grammar.Arguments(f.Parameters)
			switch {
			case err == nil:
				rule.Body = body
			case slices.Contains(r.Strict, f.Name):
				return out, nil, &RequestError{"functions", "the parameters of the strict function " + f.Name + " cannot be held: " + err.Error()}
			default:
				relaxed = append(relaxed, f.Name+": "+err.Error())
			}
		}
		if i := slices.IndexFunc(out.Functions, func(o grammar.FunctionRule) bool { return o.Name == f.Name }); i >= 0 {
			out.Functions[i] = rule // offered twice: the last one counts
			continue
		}
		out.Functions = append(out.Functions, rule)
	}
	return out, relaxed, nil
}

// held holds one submitted request to its grammar. Its methods are called by one goroutine at a time, the scheduler's.
type held struct {
	turn     *grammar.Turn
	seen     int
	logprobs bool // the client wants those of the answer's tokens, so they are sampled even where there is no choice
}

func hold(r grammar.TurnRules, logprobs bool) (*held, error) {
	turn, err := grammar.NewTurn(r)
	if err != nil {
		return nil, &RequestError{"functions", err.Error()}
	}
	return &held{turn: turn, logprobs: logprobs}, nil
}

// accept takes what was generated since the last call. An error means that the turn goes on behind its end, as a request
// may ask for that ignores end tokens. Then everything is allowed, and the turn machine reads what comes as it reads
// everything.
func (h *held) accept(generated []int32) {
	for ; h.seen < len(generated); h.seen++ {
		_ = h.turn.Accept(generated[h.seen])
	}
}

// mask is sched.Request.Mask.
func (h *held) mask(generated []int32) []uint64 {
	h.accept(generated)
	return h.turn.Mask()
}

// follow is sched.Request.Follow: headers, and what else leaves no choice, are fed instead of sampled.
func (h *held) follow(generated []int32) []int32 {
	h.accept(generated)
	if h.logprobs && h.turn.InBody() {
		return nil
	}
	return h.turn.Forced()
}
