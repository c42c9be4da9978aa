// Package schema compiles JSON Schemas to programs of package automaton: keywords are read,
// alternatives resolved (variants.go), the results intersected into shapes of one type each
// (shape.go), and those compiled to a program (compile.go).
//
// A schema is identified by its place in the document. This file reads documents, decides which
// keywords are enforced and which refused, and resolves $ref. Unknown keywords are annotations, as
// in the standard.
package schema

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// UnsupportedError reports a schema that cannot be enforced. Path is a JSON pointer into the
// schema.
type UnsupportedError struct {
	Path, Keyword, Reason string

	schemas  []*schema // without the keywords in these, the rest may be enforceable
	keywords []string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("schema at %q: %s: %s", "#"+e.Path, e.Keyword, e.Reason)
}

// InvalidError reports a document that is not a schema.
type InvalidError struct{ Path, Reason string }

func (e *InvalidError) Error() string {
	return fmt.Sprintf("schema at %q: %s", "#"+e.Path, e.Reason)
}

// refused are keywords that affect validity and are not enforced.
var refused = []string{"maxContains", "$dynamicRef", "$recursiveRef"}

// since is the draft that introduced a keyword; in earlier drafts it is an annotation.
var since = map[string]int{"const": 6, "contains": 6, "propertyNames": 6, "if": 7, "then": 7,
	"else": 7, "dependentRequired": 2019, "dependentSchemas": 2019, "minContains": 2019,
	"maxContains": 2019, "unevaluatedItems": 2019, "unevaluatedProperties": 2019,
	"$recursiveRef": 2019, "prefixItems": 2020, "$dynamicRef": 2020}

// schema is a place in the document, or a schema synthesized for one (see logic.go).
type schema struct {
	id       int32
	value    *jsondoc.Value // the enforced part
	original *jsondoc.Value // the original value in the document
	location
	owner *owner // nil: it is in the document

	// cached results
	checked, typesRead, logicDone bool
	types                         uint8 // see typesOf
	integers                      bool
	groups                        [][]*schema // see logic
	node                          int32       // of this schema alone, plus one; 0: not made yet

	// of a synthesized one, demands that no keyword can express:
	strings   []automaton.Factor // requirements of a string
	fractions bool               // a number is not an integer
	beyond    []string           // if not nil: an object has a member with another name
}

// location is a schema's position; most paths are never requested.
type location struct {
	above         *schema // nil: name is the path
	keyword, name string
	named         bool // it is below a name or a number under the keyword
}

func (s *schema) under(keyword string) location { return location{above: s, keyword: keyword} }

func (s *schema) below(keyword, name string) location { return location{s, keyword, name, true} }

// path is a JSON pointer.
func (l location) path() string {
	switch {
	case l.above == nil:
		return l.name
	case l.named:
		return l.above.path() + "/" + l.keyword + "/" + escape(l.name)
	}
	return l.above.path() + "/" + l.keyword
}

// unsupported returns the error of a keyword; related are keywords that belong to it.
func (s *schema) unsupported(keyword, reason string, related ...string) *UnsupportedError {
	if s.owner != nil {
		return s.owner.refuse("cannot be held with " + keyword + " in it: " + reason)
	}
	return &UnsupportedError{Path: s.path(), Keyword: keyword, Reason: reason,
		schemas: []*schema{s}, keywords: append(related, keyword)}
}

// reader finds the schemas of one document.
type reader struct {
	root     *schema
	doc      *jsondoc.Value
	draft    int                                // 4, 6, 7, 2019 or 2020
	relaxed  map[*jsondoc.Value]map[string]bool // unenforced keywords, by place
	schemas  map[*jsondoc.Value]*schema
	anchors  map[string]*jsondoc.Value
	paths    map[*jsondoc.Value]string
	referred map[string]*schema // by $ref
	base     string             // $id of the document
	count    int32
}

func newReader(d *jsondoc.Value, relaxed map[*jsondoc.Value]map[string]bool) *reader {
	r := &reader{schemas: map[*jsondoc.Value]*schema{}, doc: d, draft: 2020, relaxed: relaxed,
		referred: map[string]*schema{}}
	if dialect := d.Get("$schema"); dialect != nil {
		for text, draft := range map[string]int{"draft-03": 4, "draft-04": 4, "draft-06": 6,
			"draft-07": 7, "2019-09": 2019} {
			if strings.Contains(dialect.Text, text) {
				r.draft = draft
			}
		}
	}
	r.root = r.schemaOf(d, location{})
	if id := d.Get("$id"); id != nil {
		r.base = strings.TrimSuffix(id.Text, "#")
	}
	return r
}

func (r *reader) schemaOf(d *jsondoc.Value, loc location) *schema {
	s, ok := r.schemas[d]
	if !ok {
		s = &schema{id: r.count, value: d, original: d, location: loc}
		if ref := d.Get("$ref"); r.draft <= 7 && ref != nil && ref.Kind == jsondoc.String {
			s.value = objectValue(member("$ref", ref)) // keywords next to it have no meaning
		}
		unknown := func(m jsondoc.Member) bool { return r.draft < since[m.Name] }
		if r.draft < 2020 && slices.ContainsFunc(s.value.Members, unknown) {
			s.value = objectValue(slices.DeleteFunc(slices.Clone(s.value.Members), unknown)...)
		}
		if items := s.value.Get("items"); items != nil && items.Kind == jsondoc.Array {
			s.value = listedItems(s.value, items)
		}
		if dropped := r.relaxed[d]; len(dropped) > 0 {
			// a relaxed oneOf counts as an anyOf, unless that is relaxed as well
			isDropped := func(m jsondoc.Member) bool {
				return dropped[m.Name] && (m.Name != "oneOf" || dropped["anyOf"])
			}
			s.value = objectValue(slices.DeleteFunc(slices.Clone(s.value.Members), isDropped)...)
		}
		r.count++
		r.schemas[d] = s
	}
	return s
}

// listedItems rewrites a schema of an older draft to the newer keywords: a list in items is
// prefixItems, and additionalItems is items.
func listedItems(d, list *jsondoc.Value) *jsondoc.Value {
	var out []jsondoc.Member
	for _, m := range d.Members {
		switch m.Name {
		case "items":
			if len(list.Items) > 0 {
				out = append(out, member("prefixItems", list))
			}
		case "additionalItems":
			out = append(out, member("items", m.Value))
		default:
			out = append(out, m)
		}
	}
	return objectValue(out...)
}

func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// check checks one schema's keywords, not those below it.
func (r *compiler) check(s *schema) error {
	d := s.value
	if d.Kind == jsondoc.Bool || s.checked {
		return nil
	}
	if d.Kind != jsondoc.Object {
		return &InvalidError{s.path(), "a schema is an object, true or false"}
	}
	for _, m := range d.Members {
		needs := m.Name // minContains has no meaning without contains
		switch m.Name {
		case "maxContains":
			needs = "contains"
		}
		var err error
		if slices.Contains(refused, m.Name) && d.Get(needs) != nil {
			err = s.unsupported(m.Name, "is not supported")
		} else if m.Name == "$id" && s != r.root {
			err = s.unsupported(m.Name, "is supported at the root only")
		} else if strings.HasPrefix(m.Name, "unevaluated") && !isTrue(m.Value) {
			if reason := r.findPlace(s, m.Name); reason != "" {
				err = s.unsupported(m.Name, reason)
			}
		}
		if err := r.dropKeywords(s, err); err != nil {
			return err
		}
	}
	s.checked = true
	return nil
}

// refer finds the target of a $ref: the document, a JSON pointer or an anchor in it.
func (r *reader) refer(s *schema, ref string) (*schema, error) {
	if to := r.referred[ref]; to != nil {
		return to, nil
	}
	bad := func(reason string) error {
		return s.unsupported("$ref", fmt.Sprintf("%q %s", ref, reason))
	}
	document, fragment, _ := strings.Cut(ref, "#")
	if document != "" && document != r.base {
		return nil, bad("is outside the document")
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, bad("is no reference")
	}
	if fragment == "" {
		return r.root, nil
	}
	if fragment[0] != '/' {
		if r.anchors == nil {
			r.anchors = map[string]*jsondoc.Value{}
			r.paths = map[*jsondoc.Value]string{}
			r.findAnchors(r.doc, "")
		}
		if d := r.anchors[fragment]; d != nil {
			return r.schemaOf(d, location{name: r.paths[d]}), nil
		}
		return nil, bad("names no anchor of the document")
	}
	v := r.doc
	for key := range strings.SplitSeq(fragment[1:], "/") {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
		var next *jsondoc.Value
		switch v.Kind {
		case jsondoc.Object:
			next = v.Get(key)
		case jsondoc.Array:
			if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(v.Items) {
				next = v.Items[i]
			}
		}
		if next == nil {
			return nil, bad("leads nowhere")
		}
		if v = next; v.Kind == jsondoc.Object && v.Get("$id") != nil &&
			v.Get("$id").Kind == jsondoc.String {
			return nil, bad("leads into a schema with an $id of its own")
		}
	}
	to := r.schemaOf(v, location{name: fragment})
	r.referred[ref] = to
	return to, nil
}

// findAnchors finds $anchor below a place. enum and const have values, not schemas.
func (r *reader) findAnchors(d *jsondoc.Value, path string) {
	if a := d.Get("$anchor"); a != nil && a.Kind == jsondoc.String {
		r.anchors[a.Text], r.paths[d] = d, path
	}
	for _, m := range d.Members {
		if m.Name != "enum" && m.Name != "const" {
			r.findAnchors(m.Value, path+"/"+escape(m.Name))
		}
	}
	for i, item := range d.Items {
		r.findAnchors(item, path+"/"+strconv.Itoa(i))
	}
}

// MaxText bounds a schema. One of this length takes most of a second.
const MaxText = 1 << 20

// Compile compiles a JSON Schema (draft 2020-12, see docs/json-schema.md); object also requires the
// value to be an object. Errors are *InvalidError and *UnsupportedError.
func Compile(ctx context.Context, raw []byte, object bool) (*automaton.Grammar, error) {
	if len(raw) > MaxText {
		return nil, &UnsupportedError{Keyword: "schema",
			Reason: fmt.Sprintf("it is longer than %d KiB", MaxText>>10)}
	}
	d, err := jsondoc.Parse(raw, jsondoc.Lenient)
	if err != nil {
		return nil, &InvalidError{"", err.Error()}
	}
	return compileRounds(ctx, d, object, nil, newRounds())
}

// maxRounds is how often a schema is compiled until the alternatives of its oneOf are apart.
const maxRounds = 16

func compileRounds(ctx context.Context, d *jsondoc.Value, object bool,
	relaxed map[*jsondoc.Value]map[string]bool, shared *rounds) (*automaton.Grammar, error) {
	c := newCompiler(ctx, d, relaxed, shared)
	all := []*schema{c.root}
	if object {
		all = append(all, c.schemaOf(objectValue(typeMember("object")), location{}))
	}
	for range maxRounds {
		root, err := c.compile(all)
		switch {
		case ctx.Err() != nil: // regardless of its result
			return nil, ctx.Err()
		case err == nil:
			shared.free = c.free(root)
			return automaton.New(c.program, c.program.Node(root)), nil
		case err != errOverlap:
			return nil, err
		}
	}
	return nil, &UnsupportedError{Keyword: "oneOf", Reason: "two alternatives may hold at once"}
}

func AnyJSON() *automaton.Grammar { return mustSchema(`true`) }

// AnyObject is the grammar of any JSON object.
func AnyObject() *automaton.Grammar { return mustSchema(`{"type":"object"}`) }

// mustSchema compiles one of the schemas above, which are supported.
func mustSchema(raw string) *automaton.Grammar {
	c, err := cached(context.Background(), []byte(raw), false)
	if err != nil {
		panic("grammar: " + err.Error()) // a test compiles both
	}
	return c
}
