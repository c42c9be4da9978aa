package jsondoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// splitAgrees compares one level of a valid text, and all below it, with encoding/json.
func splitAgrees(t *testing.T, raw json.RawMessage) {
	t.Helper()
	f := Field{Raw: raw}
	switch f.Kind() {
	case Object:
		var want map[string]json.RawMessage
		if err := json.Unmarshal(raw, &want); err != nil {
			return // too deep for it
		}
		parts, err := f.Parts(1 << 20)
		if err != nil || len(parts.List) != len(want) || parts.Get("not there") != nil {
			t.Fatalf("%s: %v, want %d members: %v", raw, parts, len(want), err)
		}
		for _, p := range parts.List {
			if !bytes.Equal(p.Value, want[p.Name]) || !bytes.Equal(parts.Get(p.Name), p.Value) {
				t.Fatalf("%s: %q is %s, want %s", raw, p.Name, p.Value, want[p.Name])
			}
			splitAgrees(t, p.Value)
		}
		members, err := f.Members()
		if err != nil || !maps.EqualFunc(members, want, func(a, b json.RawMessage) bool {
			return bytes.Equal(a, b)
		}) {
			t.Fatalf("%s: %v, %v", raw, members, err)
		}
	case Array:
		var want []json.RawMessage
		if err := json.Unmarshal(raw, &want); err != nil {
			return
		}
		var items []Field
		for i, item := range f.Items() {
			if items = append(items, item); item.Path != fmt.Sprintf("[%d]", i) {
				t.Fatalf("item %d is called %s", i, item.Path)
			}
		}
		if f.Count(len(want)+1) != len(want) || !slices.EqualFunc(items, want,
			func(a Field, b json.RawMessage) bool { return bytes.Equal(a.Raw, b) }) {
			t.Fatalf("%s: %v", raw, items)
		}
		if n := len(want); n > 1 && f.Count(n-1) != n-1 {
			t.Fatalf("%s: more than %d are counted", raw, n-1)
		}
		for _, i := range items {
			splitAgrees(t, i.Raw)
		}
	case String:
		var want string
		hosttest.Check(t, json.Unmarshal(raw, &want))
		if got, err := f.Text(); err != nil || got != want {
			t.Fatalf("%s: %q, %v, want %q", raw, got, err, want)
		}
	}
}

var splitTexts = []string{`{}`, `[]`, ` { } `, ` [ ] `, `{"a":1,"b":[1, 2 ,{"c":"}"}],"a":2}`,
	`["a,b","\"","\\","\\\"",[],{},[[]],-1.5e+3,true,null]`, `{"\u0061":1,"a":2,"":3,"é":4}`,
	"{\n\t\"a\" : [ 1 , 2 ]\r\n, \"b\":{\"c\" :{ } } }", "{\"\xff\":1,\"\ufffd\":2}", `[0]`, `[""]`,
	"[ \"a\xff\", \"漢\\\\\", \"字 \" ]", " \"\" "}

func FuzzSplit(f *testing.F) {
	for _, text := range splitTexts {
		f.Add([]byte(text))
	}
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf(`"m%d":%d`, i%30, i))
	}
	f.Add([]byte("{" + strings.Join(many, ",") + "}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if json.Valid(text) {
			splitAgrees(t, text)
			return
		}
		x := Field{Raw: text} // what is not valid ends, and breaks nothing
		_, _ = x.Parts(1 << 20)
		x.Count(1 << 20)
	})
}

// A value is a part of the text, and appending to it does not overwrite the rest.
func TestSplitCopiesNothing(t *testing.T) {
	raw := json.RawMessage(`{"a":[1,2],"b":3}`)
	parts := hosttest.Must(Field{Raw: raw}.Parts(2))(t)
	if a := parts.Get("a"); &a[0] != &raw[5] || cap(a) != len(a) {
		t.Errorf("%s of %s", a, raw)
	}
}

// An object of too many members is refused at the first one in excess.
func TestPartsAreBounded(t *testing.T) {
	f := Field{Raw: json.RawMessage(`{"a":1,"b":2,"a":3,"c":4}`), Path: "x"}
	if p, err := f.Parts(3); err != nil || len(p.List) != 3 {
		t.Errorf("%v, %v", p, err)
	}
	_, err := f.Parts(2)
	if err == nil || err.Error() != "x is an object, not an object of at most 2 members" {
		t.Error(err)
	}
}
