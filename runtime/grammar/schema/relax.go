// What to do with a schema that cannot be enforced as a whole: leave out the keywords that cannot.
//
// A keyword is taken out where it stands, and the schema is compiled again, until the rest can be
// enforced. What must stay true: the relaxed schema takes every value that the schema takes. So the
// negation of a relaxed schema enforces nothing (see logic.go).

package schema

import (
	"context"
	"errors"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// mostRelaxed bounds how many keywords are taken out of a schema, and mostEffort the time that it
// takes, about a quarter of a second. A schema that needs more is not worth enforcing.
const (
	mostRelaxed = 24
	mostEffort  = 1 << 28
)

// relaxedSchema is a compiled schema, with what of the schema it does not enforce.
type relaxedSchema struct {
	held *automaton.Grammar
	less []string
}

var relaxedSchemas = automaton.Cache[[32]byte, relaxedSchema]{Most: automaton.Kept,
	Stale: func(r relaxedSchema) bool { return r.held.Large() }}

// RelaxedWithin compiles what can be enforced of a schema, or of the parameters of a function if
// arguments is true. It waits for its turn (see Compiling) and stops when ctx ends. less says what
// is not enforced: nothing for most schemas. Errors are as those of Compile.
func RelaxedWithin(ctx context.Context, raw []byte, arguments bool) (g *automaton.Grammar,
	less []string, err error) {
	g, err = CompileWithin(ctx, raw, arguments)
	var unsupported *UnsupportedError
	if !errors.As(err, &unsupported) || len(unsupported.at) == 0 {
		return g, nil, err
	}
	done, err := Compiling(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	r, err := relaxedSchemas.Get(schemaKey(raw, arguments), func() (r relaxedSchema, err error) {
		d, err := jsondoc.Parse(raw, jsondoc.Lenient)
		if err == nil {
			r.held, r.less, err = relax(ctx, d, arguments)
		}
		return r, err
	})
	return r.held, r.less, err
}

// relax takes keywords out until the rest can be enforced.
func relax(ctx context.Context, d *jsondoc.Value, object bool) (*automaton.Grammar, []string,
	error) {
	relaxed := map[*jsondoc.Value]map[string]bool{}
	known := newRounds()
	var less []string
	for {
		g, err := compileRounds(ctx, d, object, relaxed, known)
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) || len(less) == mostRelaxed || known.effort > mostEffort {
			return g, less, err
		}
		some := false
		for _, s := range unsupported.at {
			for _, keyword := range unsupported.keywords {
				if s.from.Get(keyword) == nil || relaxed[s.from][keyword] {
					continue
				}
				if relaxed[s.from] == nil {
					relaxed[s.from] = map[string]bool{}
				}
				relaxed[s.from][keyword], some = true, true
			}
		}
		if !some {
			return nil, nil, err
		}
		less = append(less, unsupported.Error())
	}
}
