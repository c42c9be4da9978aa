// The public JSON Schema test suite: a compiled schema accepts the suite's valid instances.
//
// An instance counts as accepted if its canonical spelling is, with the members of objects in some
// order: the order is the schema's.

package schema

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

func readSuite(t testing.TB) (names []string, groups map[string][]suiteGroup) {
	t.Helper()
	f := hosttest.Must(os.Open("../../../testdata/jsonschema/suite.json.gz"))(t)
	defer f.Close()
	z := hosttest.Must(gzip.NewReader(f))(t)
	raw := hosttest.Must(io.ReadAll(z))(t)
	hosttest.Check(t, json.Unmarshal(raw, &groups))
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, groups
}

// spellings are the canonical spellings of a value with members in every order, up to the given
// number.
func spellings(d *jsondoc.Value, most int) []string {
	switch d.Kind {
	case jsondoc.Array:
		out := []string{"["}
		for i, item := range d.Items {
			var next []string
			for _, head := range out {
				if i > 0 {
					head += ","
				}
				for _, s := range spellings(item, most) {
					if len(next) < most {
						next = append(next, head+s)
					}
				}
			}
			out = next
		}
		for i := range out {
			out[i] += "]"
		}
		return out
	case jsondoc.Object:
		var out []string
		var permute func(head string, rest []jsondoc.Member)
		permute = func(head string, rest []jsondoc.Member) {
			if len(rest) == 0 {
				out = append(out, head+"}")
				return
			}
			for i, m := range rest {
				if len(out) >= most {
					return
				}
				comma := ","
				if head == "{" {
					comma = ""
				}
				for _, s := range spellings(m.Value, most) {
					permute(head+comma+string(jsondoc.Quote(nil, m.Name))+":"+s,
						append(slices.Clone(rest[:i]), rest[i+1:]...))
				}
			}
		}
		permute("{", d.Members)
		return out
	}
	return []string{canonical(d, false)}
}

func takes(c *automaton.Grammar, data []byte) bool {
	d, err := jsondoc.Parse(data, jsondoc.Lenient)
	if err != nil {
		return false
	}
	for _, s := range spellings(d, 5000) {
		if m := c.Matcher(); m.AcceptText([]byte(s)) && m.Done() {
			return true
		}
	}
	return false
}

// narrower are valid instances that are refused, by file, group and test, because a format is
// enforced more narrowly than its standard. docs/json-schema.md lists them.
var narrower = map[string]bool{
	"format/date-time: validation of date-time strings: a valid date-time with a leap second, " +
		"with minus offset": true,
	"format/time: validation of time strings: valid leap second, positive " +
		"time-offset": true,
	"format/time: validation of time strings: valid leap second, large positive " +
		"time-offset": true,
	"format/time: validation of time strings: valid leap second, negative " +
		"time-offset": true,
	"format/time: validation of time strings: valid leap second, large negative " +
		"time-offset": true,
	"format/email: validation of e-mail addresses: a quoted string with a space in the local " +
		"part is valid": true,
	"format/email: validation of e-mail addresses: a quoted string with a double dot in the " +
		"local part is valid": true,
	"format/email: validation of e-mail addresses: a quoted string with a @ in the local part is " +
		"valid": true,
	"format/email: validation of e-mail addresses: an IPv4-address-literal after the @ is " +
		"valid": true,
	"format/email: validation of e-mail addresses: an IPv6-address-literal after the @ is " +
		"valid": true,
	// a meta-schema of its own that says minimum means nothing
	"vocabulary: schema that uses custom metaschema with with no validation vocabulary: no " +
		"validation: invalid number, but it still validates": true,
}

func TestSuite(t *testing.T) {
	names, groups := readSuite(t)
	accepted, refusedSchemas, instances, missed := 0, 0, 0, 0
	reasons := map[string]int{}
	for _, name := range names {
		if name == "format" {
			continue // there formats are annotations; here they are held, see format/
		}
		for _, g := range groups[name] {
			if name == "format/ecmascript-regex" {
				continue // its format is regex, which is an annotation here
			}
			if f, isFormat := strings.CutPrefix(name, "format/"); isFormat && formats[f] == "" &&
				f != "unknown" {
				continue // an annotation here
			}
			c, err := cached(t.Context(), g.Schema, false)
			if err != nil {
				refusedSchemas++
				var unsupported *UnsupportedError
				var invalid *InvalidError
				switch {
				case errors.As(err, &unsupported):
					reasons[unsupported.Keyword]++
				case errors.As(err, &invalid):
					reasons["invalid: "+invalid.Reason]++
					for _, test := range g.Tests {
						if test.Valid {
							t.Errorf("%s: %s: %v, but %s is valid", name, g.Description, err,
								test.Data)
						}
					}
				default:
					t.Errorf("%s: %s: %v names neither keyword nor reason", name, g.Description,
						err)
				}
				continue
			}
			accepted++
			for _, test := range g.Tests {
				if strings.HasPrefix(name, "format/") && len(test.Data) > 0 && test.Data[0] != '"' {
					continue
				}
				instances++
				if got := takes(c, test.Data); got != test.Valid {
					key := name + ": " + g.Description + ": " + test.Description
					if test.Valid && name == "format/hostname" &&
						strings.Contains(string(test.Data), "xn--") {
						continue // no encoded names
					}
					if narrower[key] && test.Valid {
						missed++
						continue
					}
					t.Errorf("%q: taken %v; schema %s instance %s", key, got, g.Schema, test.Data)
				}
			}
		}
	}
	if missed != len(narrower) {
		t.Errorf("%d instances are refused though valid, %d are listed", missed, len(narrower))
	}
	if accepted < 170 {
		t.Errorf("only %d schemas were accepted", accepted)
	}
	t.Logf("%d schemas accepted, %d refused, %d instances, %d of them valid and refused; refused "+
		"for %v", accepted, refusedSchemas, instances, missed, reasons)
}
