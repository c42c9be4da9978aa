package modeltest

// A fine-tune that was merged and exported in 16 bits, as by TRL and unsloth.

import (
	"maps"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
)

// Merged makes such an export of an open checkpoint with its config.json, in a number of files:
// experts as bfloat16, transposed, no quantization_config.
func Merged(c *checkpoint.Checkpoint, config map[string]any, files int) (*Checkpoint, error) {
	config = maps.Clone(config)
	delete(config, "quantization_config")
	w := &Checkpoint{Config: config, Shards: make([][]Tensor, files)}
	for i, want := range c.Spec.Tensors() {
		if strings.HasSuffix(want.Name, "_scales") {
			continue
		}
		t, err := c.Tensor(want.Name)
		if err != nil {
			return nil, err
		}
		tensor := Tensor{Name: want.Name, DType: string(want.DType), Shape: want.Shape,
			Data: t.Data}
		if matrix, ok := strings.CutSuffix(want.Name, "_blocks"); ok {
			rows, in := want.Shape[1], want.Shape[2]*models.BlockSize
			scales, err := c.Tensor(matrix + "_scales")
			if err != nil {
				return nil, err
			}
			whole := Dequantised(t, scales)
			data := make([]byte, len(whole))
			for e := range want.Shape[0] {
				for row := range rows {
					for k := range in {
						copy(data[2*((e*in+k)*rows+row):], whole[2*((e*rows+row)*in+k):][:2])
					}
				}
			}
			tensor = Tensor{Name: matrix, DType: "BF16", Data: data,
				Shape: []int{want.Shape[0], in, rows}}
		}
		w.Shards[i%files] = append(w.Shards[i%files], tensor)
	}
	return w, nil
}
