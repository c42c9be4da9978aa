// The work of a request before the scheduler knows it: its prompt is rendered and encoded, its
// schemas are compiled.
//
// What must stay true: this work ends soon after its caller has left; large requests do it a few at
// a time, so that a small one is ready in milliseconds whatever else comes in.

package session

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/ossrun/ossrun/runtime/grammar"
)

const (
	// smallRequest is the text that is prepared at once.
	smallRequest = 32 << 10
	// preparedAtOnce is the text of larger requests that are prepared at the same time.
	preparedAtOnce = 1 << 20
)

// Gate lets large pieces of work in a few at a time. The zero Gate is not ready.
type Gate struct{ *semaphore.Weighted }

// NewGate makes a gate.
func NewGate() Gate { return Gate{semaphore.NewWeighted(preparedAtOnce)} }

// Enter waits until work of so many bytes may begin; leave ends it. The error is ctx's.
func (g Gate) Enter(ctx context.Context, bytes int) (leave func(), err error) {
	if bytes <= smallRequest {
		return func() {}, nil
	}
	weight := int64(min(bytes, preparedAtOnce))
	if err := g.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	return func() { g.Release(weight) }, nil
}

// prepare makes the prompt and the rules of a request.
func (m *Model) prepare(ctx context.Context, r Request) (prompt []int32, out grammar.TurnRules,
	relaxed []string, err error) {
	leave, err := m.gate.Enter(ctx, r.size())
	if err != nil {
		return nil, out, nil, err
	}
	defer leave()
	if prompt, err = m.prompt(ctx, r); err != nil {
		return nil, out, nil, err
	}
	out, relaxed, err = rules(ctx, r)
	return prompt, out, relaxed, err
}

// size is about how many bytes of text a request has.
func (r Request) size() int {
	n := len(r.Instructions)
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
