package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A schema cannot keep the compiler busy: each expression is Bounded, and all of them are.
func TestExpressionsOfASchemaAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"x":{}`)
	for i := range 400 {
		fmt.Fprintf(&b, `,"p%d":{"type":"string","pattern":"(a|b|c|ab|bc|ca){1,%d}"}`, i, 60+i%120)
	}
	b.WriteString(`}}`)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // what is not bounded ends too
	defer cancel()
	_, err := Compile(ctx, []byte(b.String()), false)
	var unsupported *UnsupportedError
	if !errors.As(err, &unsupported) || unsupported.Keyword != "pattern" {
		t.Errorf("%v", err)
	}
}
