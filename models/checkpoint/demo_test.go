package checkpoint

// The embedded pack is whole and is a gpt-oss checkpoint with the released vocabulary, whatever its
// weights are.

import (
	"testing"

	"github.com/ossrun/ossrun/models"
)

func TestOpenDemo(t *testing.T) {
	c, err := OpenDemo()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Spec.Name != models.Demo || c.Spec.Vocab != 201088 || c.Path != "" {
		t.Errorf("the demo is %+v at %q", c.Spec, c.Path)
	}
	if c.Bytes() != c.Spec.WeightBytes() {
		t.Errorf("%d bytes are open, the spec says %d", c.Bytes(), c.Spec.WeightBytes())
	}
}

func BenchmarkOpenDemo(b *testing.B) {
	for b.Loop() {
		c, err := OpenDemo()
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}
