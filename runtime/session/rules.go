// From a Request to the grammar of its turn: what the sampler may choose.
//
// Arguments of a function are held to its parameters. Agents send schemas of every kind, so where
// they cannot be held they are held to a JSON object and Result.Relaxed says so, unless the
// function is strict: then the request is refused.

package session

import (
	"slices"

	"github.com/ossrun/ossrun/runtime/grammar"
)

// rules makes the grammar of a request; relaxed are the functions whose parameters are not held,
// and why.
func rules(r Request) (_ grammar.TurnRules, relaxed []string, err error) {
	out := grammar.TurnRules{Python: r.Python, Browser: r.Browser, ToolChoice: r.ToolChoice,
		Name: r.ToolName, Final: r.Final, MaxReasoning: r.MaxReasoning,
		SampleBodies: r.Params.Logprobs >= 0}
	for _, f := range r.Functions {
		rule := grammar.FunctionRule{Name: f.Name}
		if len(f.Parameters) > 0 {
			body, err := grammar.Arguments(f.Parameters)
			switch {
			case err == nil:
				rule.Body = body
			case slices.Contains(r.Strict, f.Name):
				return out, nil, &RequestError{"functions",
					"the parameters of the strict function " + f.Name + " cannot be held: " +
						err.Error()}
			default:
				relaxed = append(relaxed, f.Name+": "+err.Error())
			}
		}
		if i := slices.IndexFunc(out.Functions,
			func(o grammar.FunctionRule) bool { return o.Name == f.Name }); i >= 0 {
			out.Functions[i] = rule // offered twice: the last one counts
			continue
		}
		out.Functions = append(out.Functions, rule)
	}
	return out, relaxed, nil
}
