// Schemas: which keywords are held, which are refused, and where a $ref leads.
//
// A schema is the place in the document where it stands. What a keyword means is in shape.go; this
// file reads documents and finds what is referred to. Keywords that are not known are annotations,
// as the standard has it.

package grammar

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// UnsupportedError is a schema that asks for what cannot be held. Path is a JSON pointer into the
// schema.
type UnsupportedError struct {
	Path, Keyword, Reason string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("schema at %q: %s: %s", "#"+e.Path, e.Keyword, e.Reason)
}

// InvalidError is a schema that is none.
type InvalidError struct{ Path, Reason string }

func (e *InvalidError) Error() string {
	return fmt.Sprintf("schema at %q: %s", "#"+e.Path, e.Reason)
}

// refused are keywords that change what is valid and are not held.
var refused = []string{"not", "if", "then", "else", "contains", "minContains", "maxContains",
	"propertyNames", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedItems",
	"unevaluatedProperties", "$dynamicRef", "$recursiveRef"}

// schema is a place in the document.
type schema struct {
	id   int32
	at   *jsondoc.Value
	path string
}

// reader finds the schemas of one document.
type reader struct {
	root    *schema
	schemas map[*jsondoc.Value]*schema
	anchors map[string]*jsondoc.Value
	paths   map[*jsondoc.Value]string
	base    string // $id of the document
	count   int32
}

// at is the schema at a place.
func (r *reader) at(d *jsondoc.Value, path string) *schema {
	s, ok := r.schemas[d]
	if !ok {
		s = &schema{id: r.count, at: d, path: path}
		r.count++
		r.schemas[d] = s
	}
	return s
}

// escape makes a token of a JSON pointer.
func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// check looks at one schema's keywords, not at those below it.
func (r *reader) check(s *schema) error {
	d := s.at
	if d.Kind == jsondoc.Bool {
		return nil
	}
	if d.Kind != jsondoc.Object {
		return &InvalidError{s.path, "a schema is an object, true or false"}
	}
	for _, m := range d.Members {
		needs := m.Name // then and minContains mean nothing without what they belong to
		switch m.Name {
		case "then", "else":
			needs = "if"
		case "minContains", "maxContains":
			needs = "contains"
		}
		if slices.Contains(refused, m.Name) && d.Get(needs) != nil {
			return &UnsupportedError{s.path, m.Name, "is not supported"}
		}
		if m.Name == "$id" && s != r.root {
			return &UnsupportedError{s.path, m.Name, "is supported at the root only"}
		}
	}
	return nil
}

// refer finds what a $ref names: the document, a JSON pointer or an anchor in it.
func (r *reader) refer(s *schema, ref string) (*schema, error) {
	bad := func(reason string) error {
		return &UnsupportedError{s.path, "$ref", fmt.Sprintf("%q %s",
			ref, reason)}
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
			r.findAnchors(r.root.at, "")
		}
		if d := r.anchors[fragment]; d != nil {
			return r.at(d, r.paths[d]), nil
		}
		return nil, bad("names no anchor of the document")
	}
	at := r.root.at
	for _, key := range strings.Split(fragment[1:], "/") {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
		var next *jsondoc.Value
		switch at.Kind {
		case jsondoc.Object:
			next = at.Get(key)
		case jsondoc.Array:
			if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(at.Items) {
				next = at.Items[i]
			}
		}
		if next == nil {
			return nil, bad("leads nowhere")
		}
		if at = next; at.Kind == jsondoc.Object && at.Get("$id") != nil &&
			at.Get("$id").Kind == jsondoc.String {
			return nil, bad("leads into a schema with an $id of its own")
		}
	}
	return r.at(at, fragment), nil
}

// findAnchors looks for $anchor below a place. enum and const hold values, not schemas.
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

// compiledSchemas keeps schemas by their hash.
var compiledSchemas = cache[[32]byte, *Grammar]{most: keptAutomata}

// Schema compiles a JSON Schema (draft 2020-12, see docs/json-schema.md), or returns what was
// compiled for the same bytes before. Errors are *InvalidError and *UnsupportedError.
func Schema(raw []byte) (*Grammar, error) {
	return cachedSchema(context.Background(), raw, false)
}

// Arguments is Schema for the parameters of a function, whose arguments are an object even if the
// schema does not say so.
func Arguments(raw []byte) (*Grammar, error) {
	return cachedSchema(context.Background(), raw, true)
}

func schemaKey(raw []byte, object bool) [32]byte {
	key := sha256.Sum256(raw)
	if object {
		key[0] ^= 1
	}
	return key
}

func cachedSchema(ctx context.Context, raw []byte, object bool) (*Grammar, error) {
	key := schemaKey(raw, object)
	compile := func() (*Grammar, error) { return compileSchema(ctx, raw, object) }
	c, err := compiledSchemas.get(key, compile)
	if err == nil && c.large() {
		compiledSchemas.drop(key)
		return compiledSchemas.get(key, compile)
	}
	return c, err
}

// MostSchemaText bounds a schema. One of this length takes most of a second.
const MostSchemaText = 1 << 20

// compileSchema compiles; object demands an object beside what the schema says.
func compileSchema(ctx context.Context, raw []byte, object bool) (*Grammar, error) {
	if len(raw) > MostSchemaText {
		return nil, &UnsupportedError{"", "schema",
			fmt.Sprintf("it is longer than %d KiB", MostSchemaText>>10)}
	}
	d, err := jsondoc.Parse(raw, jsondoc.Lenient)
	if err != nil {
		return nil, &InvalidError{"", err.Error()}
	}
	r := &reader{schemas: map[*jsondoc.Value]*schema{}}
	r.root = r.at(d, "")
	if id := d.Get("$id"); id != nil {
		r.base = strings.TrimSuffix(id.Text, "#")
	}
	c := &compiler{reader: r, ctx: ctx, program: newProgram(), nodeOf: map[string]int32{},
		enums: map[*jsondoc.Value]map[string]bool{}}
	all := []*schema{r.root}
	if object {
		all = append(all, r.at(&jsondoc.Value{Kind: jsondoc.Object,
			Members: []jsondoc.Member{{Name: "type", Value: &jsondoc.Value{Kind: jsondoc.String,
				Text: "object"}}}}, ""))
	}
	root, err := c.compile(all)
	switch {
	case ctx.Err() != nil: // whatever it says of the schema
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	}
	return newCompiled(c.program, planValue, root), nil
}

// JSON is the grammar of any JSON value.
func JSON() *Grammar { return mustSchema(`true`) }

// JSONObject is the grammar of any JSON object.
func JSONObject() *Grammar { return mustSchema(`{"type":"object"}`) }

// mustSchema compiles one of the schemas above, which are known to be supported.
func mustSchema(raw string) *Grammar {
	c, err := Schema([]byte(raw))
	if err != nil {
		panic("grammar: " + err.Error()) // a test compiles both
	}
	return c
}
