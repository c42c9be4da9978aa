// Relaxing a schema that cannot be enforced completely: its unsupported keywords are dropped.
//
// A keyword is removed in place, and the schema is compiled again, until the rest can be enforced.
// What must stay true: the relaxed schema accepts every value that the schema accepts. So the
// negation of a relaxed schema enforces nothing (see logic.go).

package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// maxEffort bounds the time for that, about a quarter of a second. A schema that needs more is not
// worth enforcing.
const maxEffort = 1 << 28

// relaxedSchema is a compiled schema, and its unenforced keywords.
type relaxedSchema struct {
	grammar *automaton.Grammar
	dropped []string
}

var relaxedSchemas = automaton.Cache[[32]byte, relaxedSchema]{Most: automaton.MaxCached,
	Stale: func(r relaxedSchema) bool { return r.grammar.Large() }}

// RelaxedWithin compiles the enforceable part of a schema, or of a function's parameters if
// arguments is true. It waits for a slot (AcquireSlot) and stops when ctx ends. dropped lists the
// unenforced keywords: none for most schemas. If nothing can be enforced, the grammar is any object
// or any JSON, and dropped begins with that. Errors are those of schemas that nothing fulfils, and
// of texts that are no JSON.
func RelaxedWithin(ctx context.Context, raw []byte, arguments bool) (g *automaton.Grammar,
	dropped []string, err error) {
	g, err = CompileWithin(ctx, raw, arguments)
	var unsupported *UnsupportedError
	var invalid *InvalidError
	if !errors.As(err, &invalid) &&
		(!errors.As(err, &unsupported) || len(unsupported.schemas) == 0) {
		return g, nil, err
	}
	done, err := AcquireSlot(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	r, err := relaxedSchemas.Get(schemaKey(raw, arguments), func() (r relaxedSchema, err error) {
		d, err := jsondoc.Parse(raw, jsondoc.Lenient)
		if err == nil {
			r.grammar, r.dropped, err = relax(ctx, d, arguments)
		}
		return r, err
	})
	return r.grammar, r.dropped, err
}

// relax drops keywords until the rest can be enforced.
func relax(ctx context.Context, d *jsondoc.Value, object bool) (*automaton.Grammar, []string,
	error) {
	relaxed := map[*jsondoc.Value]map[string]bool{}
	shared := newRounds()
	shared.lenient = true
	shared.dropInvalid(relaxed, d, "")
	for {
		g, err := compileRounds(ctx, d, object, relaxed, shared)
		if err == errRelaxed {
			continue
		}
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) {
			dropped := shared.summary()
			if shared.free && len(dropped) > 0 {
				dropped = append([]string{"nothing is held"}, dropped...)
			}
			return g, dropped, err
		}
		progress := false
		for _, s := range unsupported.schemas {
			for _, keyword := range unsupported.keywords {
				if s.original.Get(keyword) != nil && !relaxed[s.original][keyword] {
					relaxKeyword(relaxed, s.original, keyword)
					progress = true
				}
			}
		}
		if progress {
			shared.dropped = append(shared.dropped, unsupported)
		}
		if progress && shared.effort <= maxEffort {
			continue
		}
		g = AnyJSON()
		if object || jsondoc.TypeName(d.Member("type").Text) == "object" {
			g = AnyObject()
		}
		return g, append([]string{"nothing is held: " + err.Error()}, shared.summary()...), nil
	}
}

func (c *compiler) free(id int32) bool {
	for i := range c.nodes[id].shapes {
		if !c.acceptsAll(&c.nodes[id].shapes[i]) {
			return false
		}
	}
	n := len(c.nodes[id].shapes)
	return n == 1 && c.nodes[id].shapes[0].object != nil || n == anyShapes
}

func (c *compiler) acceptsAll(s *shape) bool {
	o, a := s.object, s.array
	switch {
	case s.text != nil:
		return s.text == c.anyString
	case s.number != nil:
		return s.number == automaton.AnyNumber()
	case a != nil:
		return a.Min == 0 && a.Max < 0 && len(a.Prefix) == 0 && a.Least == 0 &&
			a.Items == c.program.Any
	case o != nil:
		return o.Min == 0 && o.Max < 0 && len(o.Properties) == 0 && len(o.Extra) == 1 &&
			o.Extra[0].Name == c.anyString && o.Extra[0].Value == c.program.Any
	}
	return s.literal == "null" || s.literal == "true" || s.literal == "false"
}

// anyShapes are null, true, false, numbers, strings, arrays and objects.
const anyShapes = 7

func relaxKeyword(relaxed map[*jsondoc.Value]map[string]bool, d *jsondoc.Value, keyword string) {
	if relaxed[d] == nil {
		relaxed[d] = map[string]bool{}
	}
	relaxed[d][keyword] = true
}

// dropKeywords drops a keyword at once, if that is allowed and it is in the document, so that many
// places cost one compilation in total and not one each.
func (c *compiler) dropKeywords(s *schema, err error) error {
	u, ok := err.(*UnsupportedError)
	if !ok || !c.lenient || s.owner != nil {
		return err
	}
	first := len(c.relaxed) == 0 && len(c.exclusives) > 0
	for _, keyword := range u.keywords {
		relaxKeyword(c.relaxed, s.original, keyword)
	}
	c.dropped = append(c.dropped, u)
	if first {
		return errRelaxed
	}
	s.value = objectValue(slices.DeleteFunc(slices.Clone(s.value.Members),
		func(m jsondoc.Member) bool { return slices.Contains(u.keywords, m.Name) })...)
	return nil
}

// errRelaxed requests another compilation: results about the alternatives of a oneOf are invalid
// for schemas that lost a keyword.
var errRelaxed = errors.New("a keyword is not held")

// maxNamed is how many places of a keyword are named, maxSummary the length of the summary.
const maxNamed, maxSummary = 3, 3000

// summary names the dropped keywords, each once per reason, or if that is too long each once.
func (r *rounds) summary() []string {
	for _, brief := range []bool{false, true} {
		var keys, out []string
		places := map[string][]string{}
		for _, u := range r.dropped {
			key := u.Keyword + ": " + u.Reason
			if brief {
				key = u.Keyword
			}
			if places[key] == nil {
				keys = append(keys, key)
			}
			places[key] = append(places[key], strconv.Quote("#"+u.Path))
		}
		length := 0
		for _, key := range keys {
			paths, suffix := places[key], ""
			if n := len(paths) - maxNamed; n > 0 {
				paths, suffix = paths[:maxNamed], fmt.Sprintf(" and %d more", n)
			}
			out = append(out, "schema at "+strings.Join(paths, ", ")+suffix+": "+key)
			length += len(out[len(out)-1])
		}
		if length <= maxSummary || brief {
			return out
		}
	}
	return nil
}
