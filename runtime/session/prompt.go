// From a Request to prompt tokens.
//
// The prompt is the system message, one developer message for Instructions and Functions, the
// history, and <|start|>assistant. Two rules for the assistant's earlier messages:
//
//   - The reasoning of a finished turn (its final answer is in the history) is left out. Inside a
//     tool loop it stays.
//   - If the store has the tokens that were sampled for a call or an answer, they are used in place
//     of rendered ones.

package session

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/sched"
)

// Prompt returns the tokens that a turn of a model with this store would continue. More than a
// million are refused.
func Prompt(ctx context.Context, store records.Store, r Request) ([]int32, error) {
	return (&Model{store: store, context: releasedContext}).prompt(ctx, r)
}

const releasedContext = 131072

// maxPromptContexts is the number of contexts after which encoding a prompt stops: a longer one is
// refused with this length.
const maxPromptContexts = 8

func (m *Model) prompt(ctx context.Context, r Request) ([]int32, error) {
	system, err := systemMessage(r)
	if err != nil {
		return nil, err
	}
	r.Instructions = withoutBilling(r.Instructions)
	head := []harmony.Message{system}
	if r.Instructions != "" || len(r.Functions) > 0 || r.Formats != "" {
		d := harmony.DeveloperContent{Tools: harmony.Functions(r.Functions),
			ResponseFormats: r.Formats}
		if r.Instructions != "" {
			d.Instructions = &r.Instructions
		}
		head = append(head, harmony.Developer(d))
	}
	opts := harmony.RenderOptions{FunctionTools: len(r.Functions) > 0}
	opts.Continue = func(ids int) error {
		if m.context > 0 && ids > maxPromptContexts*m.context {
			return &sched.ContextLengthError{Max: m.context, Needed: ids}
		}
		return ctx.Err()
	}
	ids := make([]int32, 0, m.promptSize(r))
	for _, msg := range head {
		if ids, err = harmony.RenderMessage(ids, msg, opts); err != nil {
			return nil, err
		}
	}
	lastFinal := -1
	for i, msg := range r.Messages {
		if isFinal(msg) {
			lastFinal = i
		}
	}
	for i := 0; i < len(r.Messages); {
		end := i
		for end < len(r.Messages) && r.Messages[end].Role == harmony.RoleAssistant {
			end++
		}
		if end == i { // not the assistant's
			if ids, err = harmony.RenderMessage(ids, withoutBillingIn(r.Messages[i].Message),
				opts); err != nil {
				return nil, err
			}
			i++
			continue
		}
		if ids, err = renderRun(ids, r.Messages[i:end], end <= lastFinal || lastFinal >= i,
			r.turns(m.store), opts); err != nil {
			return nil, err
		}
		i = end
	}
	return harmony.RenderTurn(ids, harmony.RoleAssistant), nil
}

// promptSize estimates the tokens of a request's prompt, up to the most that are encoded.
func (m *Model) promptSize(r Request) int {
	const system, lettersAToken = 128, 4
	n := system + 4*len(r.Messages) + r.size()/lettersAToken
	if m.context > 0 {
		n = min(n, maxPromptContexts*m.context)
	}
	return n
}

// renderRun appends consecutive messages of the assistant, with their sampled tokens if the store
// has them; finished tells that their turn has its final answer.
func renderRun(ids []int32, run []Message, finished bool, remembered turnStore,
	opts harmony.RenderOptions) ([]int32, error) {
	if r := recallRun(remembered, run); r != nil {
		for _, s := range r.Segments {
			if finished && s.Reasoning {
				continue
			}
			ids = append(harmony.RenderTurn(ids, harmony.RoleAssistant), s.Tokens...)
		}
		return ids, nil
	}
	var err error
	for _, msg := range run {
		if finished && isReasoning(msg) {
			continue
		}
		if ids, err = harmony.RenderMessage(ids, msg.Message, opts); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// recallRun finds the sampled tokens of a run by its last message. The texts before it must match
// too, since many conversations may have the same answer.
func recallRun(s turnStore, run []Message) *sampledTurn {
	var r *sampledTurn
	last := run[len(run)-1]
	switch {
	case last.CallID != "":
		if r = s.recall(callKey(last.CallID)); r != nil && !sameArguments(r.Arguments,
			last.Text()) {
			return nil
		}
	case isFinal(last):
		r = s.recall(answerKey(last.Text()))
	}
	if r == nil || !sameTexts(r, run) {
		return nil
	}
	return r
}

func isFinal(m Message) bool {
	return m.Role == harmony.RoleAssistant && m.Channel == "final" && m.Recipient == ""
}

func isReasoning(m Message) bool {
	return m.Role == harmony.RoleAssistant && m.Channel == "analysis" && m.Recipient == ""
}

func systemMessage(r Request) (harmony.Message, error) {
	effort := cmp.Or(r.Effort, "medium")
	if effort != "low" && effort != "medium" && effort != "high" {
		return harmony.Message{}, &RequestError{"effort", "must be low, medium or high, not " +
			effort}
	}
	s := harmony.DefaultSystem(effort, cmp.Or(r.Date, time.Now().Format(time.DateOnly)))
	if r.Identity != "" {
		s.ModelIdentity = &r.Identity
	}
	s.Tools = map[string]harmony.ToolNamespace{}
	if r.Python {
		s.Tools["python"] = harmony.BuiltinPython()
	}
	if r.Browser {
		s.Tools["browser"] = harmony.BuiltinBrowser()
	}
	return harmony.System(s), nil
}

// cuts returns the lengths of a rendered prompt at which its KV pages are kept longest.
func cuts(prompt []int32) (offsets []int) {
	assistant := assistantStart()
	afterOther := false // the latest message is not the assistant's
	for i, id := range prompt {
		if id != token.Start {
			continue
		}
		if afterOther {
			offsets = append(offsets, i)
		}
		end := min(len(prompt), i+len(assistant))
		afterOther = !slices.Equal(prompt[i:end], assistant)
	}
	return offsets
}

var billing = regexp.MustCompile(
	`(?im)^[ \t]*x-anthropic-billing-header:(?:[ \t]*[\w.-]+=[^;\s]*;?)*[ \t]*(?:\r?\n)?`)

// withoutBilling removes such headers from a system text. A header starts at the beginning of a
// line and ends with its last name=value; the text after it stays.
func withoutBilling(text string) string {
	if !strings.Contains(strings.ToLower(text), "x-anthropic-billing-header:") {
		return text
	}
	return billing.ReplaceAllString(text, "")
}

// withoutBillingIn is withoutBilling for a system or developer message. Other messages are returned
// unchanged.
func withoutBillingIn(m harmony.Message) harmony.Message {
	if m.Role != harmony.RoleSystem && m.Role != harmony.RoleDeveloper {
		return m
	}
	m.Content = slices.Clone(m.Content)
	for i := range m.Content {
		c := &m.Content[i]
		c.Text = withoutBilling(c.Text)
		if c.Developer != nil && c.Developer.Instructions != nil {
			d, text := *c.Developer, withoutBilling(*c.Developer.Instructions)
			d.Instructions, c.Developer = &text, &d
		}
	}
	return m
}
