package checkpoint

// The embedded pack is complete and is a gpt-oss checkpoint with the released vocabulary, for any
// weights.

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/pack"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestOpenDemo(t *testing.T) {
	whole, err := pack.Unpack(bytes.NewReader(assets.DemoPack))
	if err != nil || sha256.Sum256(whole.Bytes) != whole.SHA256 {
		t.Fatal("the program's own pack, whose hash nobody looks at later: ", err)
	}
	if err := whole.Free(); err != nil {
		t.Error(err)
	}
	c := hosttest.Must(OpenDemo())(t)
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
		c := hosttest.Must(OpenDemo())(b)
		c.Close()
	}
}
