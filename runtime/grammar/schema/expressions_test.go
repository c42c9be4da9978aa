package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// A schema cannot keep the compiler busy: each expression is Bounded, and all of them are.
func TestExpressionsOfASchemaAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"x":{}`)
	for i := range 400 {
		fmt.Fprintf(&b, `,"p%d":{"type":"string","pattern":"(a|b|c|ab|bc|ca){1,%d}"}`, i, 60+i%120)
	}
	b.WriteString(`}}`)
	begin := hosttest.ProcessTime()
	_, err := Compile(t.Context(), []byte(b.String()), false)
	var unsupported *UnsupportedError
	if !errors.As(err, &unsupported) || unsupported.Keyword != "pattern" {
		t.Errorf("%v", err)
	}
	if took := hosttest.ProcessTime() - begin; took > time.Minute {
		t.Errorf("it takes %v to refuse", took)
	}
}
