// What is made once: schemas by their hash, header tables by their tools.

package grammar

import (
	"fmt"
	"testing"
	"time"
)

func TestSchemasAreCompiledOnce(t *testing.T) {
	raw := `{"type":"object","properties":{"cached":{"type":"string"}}}`
	first, again := schemaOf(t, raw), schemaOf(t, raw)
	if first != again {
		t.Error("the same schema is compiled twice")
	}
	arguments, err := SchemaWithin(t.Context(), []byte(raw), true)
	if err != nil || arguments == first {
		t.Errorf("arguments share the grammar of an answer: %v", err)
	}
	if other := schemaOf(t, raw+" "); other == first {
		t.Error("another text is taken for the same")
	}
	for i := range keptAutomata + 1 {
		schemaOf(t, fmt.Sprintf(`{"const":%d}`, i))
	}
	if len(compiledSchemas.made) > keptAutomata {
		t.Errorf("%d schemas are kept", len(compiledSchemas.made))
	}
	m := first.Matcher() // a grammar that is no longer kept goes on
	if !m.bytes([]byte(`{"cached":"yes"}`)) || !m.Done() {
		t.Error("a grammar that is no longer kept does not go on")
	}
}

func TestHeaderTablesAreShared(t *testing.T) {
	rules := TurnRules{Functions: []FunctionRule{{Name: "shared_table"}, {Name: "other"}}}
	a, b := turnOf(t, rules), turnOf(t, rules)
	if a.table != b.table {
		t.Error("two turns with the same tools have tables of their own")
	}
	if x, y := a.Mask(), b.Mask(); &x[0] != &y[0] {
		t.Error("the masks of a table are made twice")
	}
	rules.ToolChoice = None
	if c := turnOf(t, rules); c.table == a.table {
		t.Error("a turn that may not call has the table of one that may")
	}
	for i := range keptHeaderTables + 1 {
		turnOf(t, TurnRules{Functions: []FunctionRule{{Name: fmt.Sprint("tool", i)}}})
	}
	if len(headerTables.made) > keptHeaderTables {
		t.Errorf("%d tables are kept", len(headerTables.made))
	}
}

// The aim is one second for 300 tools in a megabyte; the bound leaves room for the race detector.
func TestManyToolsCompile(t *testing.T) {
	size, begin := 0, processTime()
	for _, raw := range manyTools() {
		size += len(raw)
		if _, err := compileSchema(t.Context(), raw, true); err != nil {
			t.Fatal(err)
		}
	}
	took := processTime() - begin
	t.Logf("300 tools in %d bytes: %v of processor time", size, took)
	if size < 1<<20 || took > 10*time.Second {
		t.Errorf("300 tools in %d bytes take %v", size, took)
	}
}
