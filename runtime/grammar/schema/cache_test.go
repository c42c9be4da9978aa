// What is made once: schemas by their hash.

package schema

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/ossrun/ossrun/runtime/grammar/automaton"
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
	for i := range automaton.MaxCached + 1 {
		schemaOf(t, fmt.Sprintf(`{"const":%d}`, i))
	}
	if compiledSchemas.Has(schemaKey([]byte(raw), false)) {
		t.Errorf("more than %d schemas are kept", automaton.MaxCached)
	}
	m := first.Matcher() // a grammar that is no longer kept goes on
	if !m.AcceptText([]byte(`{"cached":"yes"}`)) || !m.Done() {
		t.Error("a grammar that is no longer kept does not go on")
	}
}

// Three hundred tools in a megabyte are compiled with bounded allocations; BenchmarkCompile300Tools
// measures the time.
func TestManyToolsCompile(t *testing.T) {
	const most = 64 << 20
	tools, size := manyTools(), 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, raw := range tools {
		size += len(raw)
		if _, err := Compile(t.Context(), raw, true); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	n := after.TotalAlloc - before.TotalAlloc
	t.Logf("300 tools in %d bytes: %d KiB are allocated", size, n>>10)
	if size < 1<<20 || n > most {
		t.Errorf("300 tools in %d bytes allocate %d MiB", size, n>>20)
	}
}
