package harmony

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

func TestBuiltinTools(t *testing.T) {
	raw, err := os.ReadFile("../testdata/harmony/meta.json")
	if err != nil {
		t.Fatal(err)
	}
	var meta struct {
		Browser json.RawMessage `json:"browser_tool"`
		Python  json.RawMessage `json:"python_tool"`
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		got  ToolNamespace
		want json.RawMessage
	}{{BuiltinBrowser(), meta.Browser}, {BuiltinPython(), meta.Python}} {
		text, err := json.Marshal(c.got)
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(c.want, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %s, want %s", c.got.Name, text, c.want)
		}
	}
}
