// What is made once: schemas by their hash.

package schema

import (
	"fmt"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/grammar/automaton"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestSchemasAreCompiledOnce(t *testing.T) {
	raw := `{"type":"object","properties":{"cached":{"type":"string"}}}`
	first, again := schemaOf(t, raw), schemaOf(t, raw)
	if first != again {
		t.Error("the same schema is compiled twice")
	}
	arguments, err := CompileWithin(t.Context(), []byte(raw), true)
	if err != nil || arguments == first {
		t.Errorf("arguments share the grammar of an answer: %v", err)
	}
	if other := schemaOf(t, raw+" "); other == first {
		t.Error("another text is taken for the same")
	}
	for i := range automaton.Kept + 1 {
		schemaOf(t, fmt.Sprintf(`{"const":%d}`, i))
	}
	if compiledSchemas.Has(schemaKey([]byte(raw), false)) {
		t.Errorf("more than %d schemas are kept", automaton.Kept)
	}
	m := first.Matcher() // a grammar that is no longer kept goes on
	if !m.AcceptText([]byte(`{"cached":"yes"}`)) || !m.Done() {
		t.Error("a grammar that is no longer kept does not go on")
	}
}

// The aim is one second for 300 tools in a megabyte; the bound leaves room for the race detector.
func TestManyToolsCompile(t *testing.T) {
	size, begin := 0, hosttest.ProcessTime()
	for _, raw := range manyTools() {
		size += len(raw)
		if _, err := Compile(t.Context(), raw, true); err != nil {
			t.Fatal(err)
		}
	}
	took := hosttest.ProcessTime() - begin
	t.Logf("300 tools in %d bytes: %v of processor time", size, took)
	if size < 1<<20 || took > 10*time.Second {
		t.Errorf("300 tools in %d bytes take %v", size, took)
	}
}
