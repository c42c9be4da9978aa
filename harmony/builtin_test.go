package harmony

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestBuiltinTools(t *testing.T) {
	raw := hosttest.Must(os.ReadFile("../testdata/harmony/meta.json"))(t)
	var meta struct {
		Browser json.RawMessage `json:"browser_tool"`
		Python  json.RawMessage `json:"python_tool"`
	}
	hosttest.Check(t, json.Unmarshal(raw, &meta))
	for _, c := range []struct {
		got  ToolNamespace
		want json.RawMessage
	}{{BuiltinBrowser(), meta.Browser}, {BuiltinPython(), meta.Python}} {
		text := hosttest.Must(json.Marshal(c.got))(t)
		var got, want any
		hosttest.Check(t, json.Unmarshal(text, &got))
		hosttest.Check(t, json.Unmarshal(c.want, &want))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %s, want %s", c.got.Name, text, c.want)
		}
	}
}
