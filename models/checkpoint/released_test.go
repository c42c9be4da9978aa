package checkpoint_test

// Checkpoints of the released sizes, without their weights: offsets beyond 32 bits, and nothing
// that grows with the size.

import (
	"path/filepath"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestOpenReleasedSizes(t *testing.T) {
	for _, spec := range []models.Spec{models.Spec20B(), models.Spec120B()} {
		t.Run(spec.Name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), spec.Name)
			if err := modeltest.WriteSparse(folder, spec, 3); err != nil {
				t.Skipf("the file system does not hold %d bytes of nothing: %v", spec.WeightBytes(),
					err)
			}
			c, err := checkpoint.Open(folder)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if !c.Spec.SameShape(spec) || c.Spec.Name != spec.Name ||
				c.Bytes() != spec.WeightBytes() {
				t.Errorf("it opens as %+v of %d bytes", c.Spec, c.Bytes())
			}
			head := hosttest.Must(c.Tensor("lm_head.weight"))(t)
			if int64(len(head.Data)) != 201088*2880*2 ||
				head.Data[len(head.Data)-1] != 0 {
				t.Errorf("lm_head has %d bytes", len(head.Data))
			}
			found, err := checkpoint.Resolve(folder)
			if err != nil || !found.Complete || found.Bytes < spec.WeightBytes() {
				t.Errorf("it is found as %+v, %v", found, err)
			}
		})
	}
}
