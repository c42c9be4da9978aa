package checkpoint

// The golden checkpoints open, with the content of their files.

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestOpenGolden(t *testing.T) {
	for _, test := range []struct {
		name   string
		want   models.Spec
		shards int
	}{
		{"T1", models.Spec{Layers: 4, Hidden: 128, Intermediate: 128, Heads: 8, KVHeads: 2,
			Experts: 8, ExpertsPerToken: 4, Vocab: 1024, EOS: []int32{1022, 1023}}, 2},
		{"T2", models.Spec{Layers: 3, Hidden: 192, Intermediate: 96, Heads: 4, KVHeads: 1,
			Experts: 16, ExpertsPerToken: 2, Vocab: 777, EOS: []int32{775, 776}}, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := filepath.Join("..", "..", "testdata", "model", test.name, "checkpoint")
			c := hosttest.Must(Open(folder))(t)
			defer c.Close()
			want := models.Spec20B()
			want.Name, want.Layers, want.Experts = "checkpoint", test.want.Layers, test.want.Experts
			want.Hidden, want.Intermediate, want.Heads, want.KVHeads = test.want.Hidden,
				test.want.Intermediate, test.want.Heads, test.want.KVHeads
			want.ExpertsPerToken, want.Vocab = test.want.ExpertsPerToken, test.want.Vocab
			if !c.Spec.SameShape(want) || c.Spec.Name != "checkpoint" {
				t.Errorf("spec is %+v, want %+v", c.Spec, want)
			}
			if !slices.Equal(c.Spec.EOS, test.want.EOS) {
				t.Errorf("EOS is %v, want %v", c.Spec.EOS, test.want.EOS)
			}
			var total int64
			files := map[string]bool{}
			for _, w := range c.Spec.Tensors() {
				got := hosttest.Must(c.Tensor(w.Name))(t)
				if got.Name != w.Name || got.DType != w.DType ||
					!slices.Equal(got.Shape, w.Shape) || int64(len(got.Data)) != w.Bytes() {
					t.Errorf("tensor %s is %s %v of %d bytes, want %s %v of %d", w.Name, got.DType,
						got.Shape, len(got.Data), w.DType, w.Shape, w.Bytes())
				}
				total += w.Bytes()
				files[got.File] = true
			}
			if c.Bytes() != total || total != c.Spec.WeightBytes() {
				t.Errorf("bytes are %d, the tensors sum to %d, the spec says %d", c.Bytes(), total,
					c.Spec.WeightBytes())
			}
			if len(files) != test.shards {
				t.Errorf("tensors lie in %d files, want %d", len(files), test.shards)
			}
			if got := hosttest.Must(c.Tensor("no such tensor"))(t); got.Data != nil {
				t.Errorf("an unknown tensor has %d bytes", len(got.Data))
			}
		})
	}
}

func TestTensorIsAView(t *testing.T) {
	folder := filepath.Join("..", "..", "testdata", "model", "T1", "checkpoint")
	c := hosttest.Must(Open(folder))(t)
	defer c.Close()
	got := hosttest.Must(c.Tensor("model.norm.weight"))(t)
	file, err := os.ReadFile(filepath.Join(folder, got.File))
	if err != nil {
		t.Fatal(err)
	}
	// All of the shard's tensors together are the end of the file: find this one's bytes by its
	// header's own order.
	if !slices.ContainsFunc(indexesOf(file, got.Data), func(i int) bool { return i >= 8 }) {
		t.Error("the tensor's bytes are not in its file")
	}
	if cap(got.Data) != len(got.Data) {
		t.Errorf("a view of %d bytes can grow to %d", len(got.Data), cap(got.Data))
	}
}

func indexesOf(file, part []byte) []int {
	var at []int
	for i := 0; i+len(part) <= len(file); i++ {
		if slices.Equal(file[i:i+len(part)], part) {
			at = append(at, i)
		}
	}
	return at
}
