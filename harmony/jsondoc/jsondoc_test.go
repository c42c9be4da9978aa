package jsondoc

// Not covered by harmony's and the grammar's goldens: the two dialects next to each other, large
// objects, and linear time.

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestDialects(t *testing.T) {
	for _, c := range []struct{ text, serde, lenient string }{
		{`{"b":1,"a":[true,null,"é\n"]}`, `{"b":1,"a":[true,null,"é\n"]}`,
			`{"b":1,"a":[true,null,"é\n"]}`},
		{`{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`, `{"a":3,"b":2}`},
		{`[1.50, 1e+30, -0]`, `[1.5,1e30,-0.0]`, `[1.50,1e+30,-0]`},
		{`"\ud83d\ude00"`, `"😀"`, `"😀"`},
		{`"\ud83dA"`, "", "\"\ufffdA\""},
		{`"\ud83d\u0041"`, "", "\"\ufffdA\""},
		{"\"a\xffb\"", "", "\"a\ufffdb\""},
		{"1e999", "", "1e999"},
		{"[1,]", "", ""}, {"{", "", ""}, {"01", "", ""}, {"tru", "", ""}, {"1 2", "", ""},
		{"\"\x01\"", "", ""}, {"", "", ""},
		{strings.Repeat("[", 200) + strings.Repeat("]", 200), "", strings.Repeat("[", 200) +
			strings.Repeat("]", 200)},
		{strings.Repeat("[", 600) + strings.Repeat("]", 600), "", ""},
	} {
		for want, d := range map[*string]Dialect{&c.serde: Serde, &c.lenient: Lenient} {
			v, err := Parse([]byte(c.text), d)
			if err != nil && *want != "" || err == nil && v.String() != *want {
				t.Errorf("%.40q is %v, %v, want %.40q", c.text, v, err, *want)
			}
		}
	}
}

// FuzzLenient: input that encoding/json accepts is accepted, with the same meaning.
func FuzzLenient(f *testing.F) {
	f.Add([]byte(`{"a":[1,"\ud800x",{"a":1,"a":2}], "b":1.5e3}`))
	f.Add([]byte("\"\xf0\x80\xff\\u00e9\""))
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := Parse(text, Lenient)
		if valid := json.Valid(text); valid != (err == nil) {
			if !valid || !strings.Contains(err.Error(), "deeper") {
				t.Fatalf("valid: %v, read: %v", valid, err)
			}
		}
		if err != nil {
			return
		}
		var want, got any
		if json.Unmarshal(text, &want) != nil {
			return // a number beyond float64
		}
		hosttest.Check(t, json.Unmarshal(v.Append(nil, Spelling{}), &got))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// Reading an object and looking up its members is linear: with a hundred times as many members it
// takes 171 to 280 times the processor time. Searching all members for each would take 10,000.
func TestLargeObjects(t *testing.T) {
	cost := func(n int) time.Duration {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"member%d":%d`, i, i)
		}
		text := []byte("{" + b.String()[1:] + "}")
		start := hosttest.ProcessTime()
		v := hosttest.Must(Parse(text, Lenient))(t)
		for i := range n {
			if v.Get(fmt.Sprint("member", i)).Text != fmt.Sprint(i) {
				t.Fatal("another member was found")
			}
		}
		return hosttest.ProcessTime() - start
	}
	cost(1000)
	if small, large := min(cost(1000), cost(1000)),
		min(cost(100_000), cost(100_000)); large > 2500*small {
		t.Errorf("1,000 members take %v, 100,000 take %v", small, large)
	}
}

func TestFields(t *testing.T) {
	for _, c := range []struct {
		read func(Field) (any, error)
		raw  string
		want string
	}{
		{func(f Field) (any, error) { return f.Integer(1, 5) }, "5.0", "5"},
		{func(f Field) (any, error) { return f.Integer(1, 5) }, "6",
			"x is 6, it must be between 1 and 5"},
		{func(f Field) (any, error) { return f.Integer(1, 5) }, "1.5",
			"x is a number, not an integer"},
		{func(f Field) (any, error) { return f.Number(0, 2) }, `"1"`,
			"x is a string, not a number"},
		{func(f Field) (any, error) { return f.Text() }, `["a"]`, "x is a list, not a string"},
		{func(f Field) (any, error) { return f.Text() }, "", "x is null, not a string"},
		{func(f Field) (any, error) { return f.Bool() }, " true", "true"},
		{func(f Field) (any, error) { return f.Bits() }, "-1", "18446744073709551615"},
		{func(f Field) (any, error) { return f.Bits() }, "1e30",
			"x is a number, not an integer of 64 bits"},
		{func(f Field) (any, error) {
			last := ""
			for _, item := range f.Items() {
				last = item.Path
			}
			return last, nil
		}, `[1,2]`, "x[1]"},
	} {
		got, err := c.read(Field{json.RawMessage(c.raw), "x"})
		var e *FieldError
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%s: %T", c.raw, err)
		}
		if err != nil {
			got = err
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s is %v, want %s", c.raw, got, c.want)
		}
	}
}
