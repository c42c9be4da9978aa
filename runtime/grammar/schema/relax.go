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
const mostEffort = 1 << 28

// relaxedSchema is a compiled schema, and its unenforced keywords.
type relaxedSchema struct {
	held *automaton.Grammar
	less []string
}

var relaxedSchemas = automaton.Cache[[32]byte, relaxedSchema]{Most: automaton.Kept,
	Stale: func(r relaxedSchema) bool { return r.held.Large() }}

// RelaxedWithin compiles the enforceable part of a schema, or of a function's parameters if
// arguments is true. It waits for a slot (see Compiling) and stops when ctx ends. less names every
// unenforced keyword: none for most schemas. If nothing can be enforced, the grammar is any object
// or any JSON, and less begins with that. Errors are those of invalid schemas.
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

// relax drops keywords until the rest can be enforced.
func relax(ctx context.Context, d *jsondoc.Value, object bool) (*automaton.Grammar, []string,
	error) {
	relaxed := map[*jsondoc.Value]map[string]bool{}
	known := newRounds()
	known.lenient = true
	for {
		g, err := compileRounds(ctx, d, object, relaxed, known)
		if err == errRelaxed {
			continue
		}
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) {
			less := known.summary()
			if known.free && len(less) > 0 {
				less = append([]string{"nothing is held"}, less...)
			}
			return g, less, err
		}
		some := false
		for _, s := range unsupported.at {
			for _, keyword := range unsupported.keywords {
				if s.from.Get(keyword) != nil && !relaxed[s.from][keyword] {
					relax1(relaxed, s, keyword)
					some = true
				}
			}
		}
		if some {
			known.left = append(known.left, unsupported)
		}
		if some && known.effort <= mostEffort {
			continue
		}
		g = AnyJSON()
		if t := d.Get("type"); object || t != nil && t.Text == "object" {
			g = AnyObject()
		}
		return g, append([]string{"nothing is held: " + err.Error()}, known.summary()...), nil
	}
}

// free reports whether a node accepts any value, or any object.
func (c *compiler) free(id int32) bool {
	for i := range c.nodes[id].shapes {
		if !c.unbound(&c.nodes[id].shapes[i]) {
			return false
		}
	}
	n := len(c.nodes[id].shapes)
	return n == 1 && c.nodes[id].shapes[0].object != nil || n == anyShapes
}

// unbound reports whether a shape accepts every value of its kind.
func (c *compiler) unbound(s *shape) bool {
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

func relax1(relaxed map[*jsondoc.Value]map[string]bool, s *schema, keyword string) {
	if relaxed[s.from] == nil {
		relaxed[s.from] = map[string]bool{}
	}
	relaxed[s.from][keyword] = true
}

// leave drops a keyword at once, if that is allowed and it is in the document, so that many places
// cost one compilation in total and not one each.
func (c *compiler) leave(s *schema, err error) error {
	u, ok := err.(*UnsupportedError)
	if !ok || !c.lenient || s.by != nil {
		return err
	}
	first := len(c.relaxed) == 0 && len(c.exclusives) > 0
	for _, keyword := range u.keywords {
		relax1(c.relaxed, s, keyword)
	}
	c.left = append(c.left, u)
	if first {
		return errRelaxed
	}
	s.at = objectValue(slices.DeleteFunc(slices.Clone(s.at.Members),
		func(m jsondoc.Member) bool { return slices.Contains(u.keywords, m.Name) })...)
	return nil
}

// errRelaxed requests another compilation: results about the alternatives of a oneOf are invalid
// for schemas that lost a keyword.
var errRelaxed = errors.New("a keyword is not held")

// maxNamed is how many places of a keyword are named, maxSummary the length of the summary.
const mostNamed, mostSaid = 3, 3000

// summary names the dropped keywords, each once per reason, or if that is too long each once.
func (r *rounds) summary() []string {
	for _, brief := range []bool{false, true} {
		var keys, out []string
		places := map[string][]string{}
		for _, u := range r.left {
			key := u.Keyword + ": " + u.Reason
			if brief {
				key = u.Keyword
			}
			if places[key] == nil {
				keys = append(keys, key)
			}
			places[key] = append(places[key], strconv.Quote("#"+u.Path))
		}
		said := 0
		for _, key := range keys {
			at, more := places[key], ""
			if n := len(at) - mostNamed; n > 0 {
				at, more = at[:mostNamed], fmt.Sprintf(" and %d more", n)
			}
			out = append(out, "schema at "+strings.Join(at, ", ")+more+": "+key)
			said += len(out[len(out)-1])
		}
		if said <= mostSaid || brief {
			return out
		}
	}
	return nil
}
