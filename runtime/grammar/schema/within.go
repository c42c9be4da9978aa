// Compiles schemas beside others, for requests that may go away, and keeps what was compiled.
//
// What must stay true: compilations use at most half of the cores, so that other requests go on
// however many schemas wait; a compilation ends soon after its request; one that was given up is
// not kept as a failure.

package schema

import (
	"context"
	"crypto/sha256"
	"runtime"

	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// compiledSchemas keeps schemas by their hash.
var compiledSchemas = automaton.Cache[[32]byte, *automaton.Grammar]{Most: automaton.Kept,
	Stale: (*automaton.Grammar).Large}

func schemaKey(raw []byte, object bool) [32]byte {
	key := sha256.Sum256(raw)
	if object {
		key[0] ^= 1
	}
	return key
}

// cached is what was compiled for the same bytes before, or is now.
func cached(ctx context.Context, raw []byte, object bool) (*automaton.Grammar, error) {
	return compiledSchemas.Get(schemaKey(raw, object),
		func() (*automaton.Grammar, error) { return Compile(ctx, raw, object) })
}

var compiling = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// Compiling waits for a place among those who compile; done gives it back. The error is ctx's.
func Compiling(ctx context.Context) (done func(), err error) {
	select {
	case compiling <- struct{}{}:
		return func() { <-compiling }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// CompileWithin is Compile, with arguments for the parameters of a function, whose arguments are an
// object even if the schema does not say so; what was compiled before is not compiled again. It
// waits for its turn (see Compiling) and stops when ctx ends.
func CompileWithin(ctx context.Context, raw []byte, arguments bool) (*automaton.Grammar, error) {
	if compiledSchemas.Has(schemaKey(raw, arguments)) {
		return cached(ctx, raw, arguments)
	}
	done, err := Compiling(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return cached(ctx, raw, arguments)
}

// pollEvery is how many pieces of work a compiler does before it asks whether its request is gone.
const pollEvery = 64

// poll is the error of a request that has gone.
func (c *compiler) poll() error {
	if c.polls++; c.polls%pollEvery != 0 || c.ctx == nil {
		return nil
	}
	return c.ctx.Err()
}
