// The work of a request before scheduling: its prompt is rendered and encoded, and the grammar of
// its turn is compiled, which says which tokens may be sampled.
//
// The grammar enforces a function's parameters. Agents send schemas of every kind. Unsupported
// parts of one are not enforced, and Result.Relaxed reports them; if nothing is left, the arguments
// are any JSON object. If the function is strict, the request is refused.
//
// What must stay true: this work ends soon after its client has disconnected; large requests wait
// at the gate, so that a small one is ready in milliseconds under any load.

package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
)

func (m *Model) prepare(ctx context.Context, r Request) (prompt []int32, out grammar.TurnRules,
	relaxed []string, err error) {
	leave, err := m.gate.Enter(ctx, r.client(), r.size())
	if err != nil {
		return nil, out, nil, err
	}
	defer leave()
	if prompt, err = m.prompt(ctx, r); err != nil {
		return nil, out, nil, err
	}
	out, relaxed, err = rules(ctx, r)
	out.Ends = m.ends
	return prompt, out, relaxed, err
}

func (r Request) client() string {
	if r.Share == nil {
		return ""
	}
	return r.Share.Client
}

func (r Request) size() int {
	n := len(r.Instructions) + len(r.Formats)
	for _, f := range r.Functions {
		n += len(f.Parameters) + len(f.Description)
	}
	for _, m := range r.Messages {
		for _, c := range m.Content {
			n += len(c.Text)
		}
	}
	return n
}

// maxSchemas bounds what one request makes the server compile.
const maxSchemas = 2 * schema.MaxText

var errSchemasTooLong = fmt.Errorf("the schemas of the functions are longer than %d KiB in all",
	maxSchemas>>10)

// Callable tells whether the model may call the tool with this name: python, browser,
// browser.NAME, functions.NAME.
func (r *Request) Callable(name string) bool {
	return r.Only == nil || slices.Contains(r.Only, name)
}

// rules makes the grammar of a request; relaxed lists the functions whose parameters are not
// enforced, and why.
func rules(ctx context.Context, r Request) (_ grammar.TurnRules, relaxed []string, err error) {
	out := grammar.TurnRules{Python: r.Python && r.Callable("python"),
		Browser: r.Browser && r.Callable("browser"), ToolChoice: r.ToolChoice,
		Name: r.ToolName, Final: r.Final, MaxReasoning: r.MaxReasoning,
		SampleBodies: r.Params.Logprobs >= 0}
	for _, name := range r.Only {
		if one, is := strings.CutPrefix(name, "browser."); is && r.Browser {
			out.Browser, out.BrowserOnly = true, one
		}
	}
	index := make(map[string]int, len(r.Functions)) // each function's index in out
	schemas := 0                                    // bytes
	for _, f := range r.Functions {
		if !r.Callable("functions." + f.Name) {
			continue
		}
		rule := grammar.FunctionRule{Name: f.Name}
		if text, ok := r.Texts[f.Name]; ok {
			rule.Body, rule.Text = text, true
		} else if len(f.Parameters) > 0 {
			var body *grammar.Grammar
			var missing []string
			err := errSchemasTooLong
			strict := slices.Contains(r.Strict, f.Name)
			schemas += len(f.Parameters)
			switch {
			case schemas > maxSchemas:
			case strict:
				body, err = schema.CompileWithin(ctx, f.Parameters, true)
			default:
				body, missing, err = schema.RelaxedWithin(ctx, f.Parameters, true)
			}
			switch {
			case err == nil:
				rule.Body = body
				for _, l := range missing {
					relaxed = append(relaxed, f.Name+": "+l)
				}
			case ctx.Err() != nil:
				return out, nil, ctx.Err()
			case strict:
				return out, nil, &RequestError{"functions",
					"the parameters of the strict function " + f.Name + " are not supported: " +
						err.Error()}
			default:
				relaxed = append(relaxed, f.Name+": nothing is held: "+err.Error())
			}
		}
		if i, ok := index[f.Name]; ok {
			out.Functions[i] = rule // the last one is used
			continue
		}
		index[f.Name] = len(out.Functions)
		out.Functions = append(out.Functions, rule)
	}
	return out, relaxed, nil
}
