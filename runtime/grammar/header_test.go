package grammar

import (
	"fmt"
	"testing"
)

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
	for i := range maxHeaderTables + 1 {
		turnOf(t, TurnRules{Functions: []FunctionRule{{Name: fmt.Sprint("tool", i)}}})
	}
	rules.ToolChoice = Auto
	if b := turnOf(t, rules); b.table == a.table {
		t.Errorf("more than %d tables are kept", maxHeaderTables)
	}
}
