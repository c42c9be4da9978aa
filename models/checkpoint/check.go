package checkpoint

// The check for every checkpoint, from disk or embedded. Each tensor of the Spec must be in the
// file that the index names, with exactly that type and shape. A tensor unknown to gpt-oss is
// refused if its name says that the forward pass uses it (model. or lm_head.); without it the model
// would be another one.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/safetensors"
)

// check fills c's tensors from files. placed is the index from names to files, nil without one.
func (c *Checkpoint) check(files []*safetensors.File, placed map[string]string) error {
	tensors := map[string]models.Tensor{}
	for _, f := range files {
		for i := range f.Header.Tensors {
			t := f.Tensor(i)
			if first, ok := tensors[t.Name]; ok {
				return fmt.Errorf("%s and %s both hold tensor %s", first.File, t.File,
					safetensors.Printable(t.Name))
			}
			tensors[t.Name] = t
		}
	}
	if _, ok := tensors["block.0.attn.sinks"]; ok {
		var err error
		if tensors, err = fromOriginal(c.Spec, tensors); err != nil {
			return err
		}
		placed = nil // it has the original names
	}
	if err := foreignTensors(tensors); err != nil {
		return err
	}
	specs := c.Spec.Tensors()
	c.tensors = make(map[string]models.Tensor, len(specs))
	for _, want := range specs {
		got, ok := tensors[want.Name]
		file, listed := placed[want.Name]
		switch {
		case !ok && listed:
			return fmt.Errorf("%s does not hold tensor %s, which %s places there", file, want.Name,
				safetensors.IndexName)
		case !ok && len(files) == 1:
			return fmt.Errorf("%s does not hold tensor %s, which config.json calls for",
				files[0].Name, want.Name)
		case !ok:
			return fmt.Errorf("%s does not list tensor %s, which config.json calls for",
				safetensors.IndexName, want.Name)
		case listed && file != got.File:
			return fmt.Errorf(
				"%s holds tensor %s, which %s places in %s: the files are of different downloads",
				got.File, want.Name, safetensors.IndexName, file)
		case got.DType != want.DType:
			return fmt.Errorf("%s: tensor %s is %s, gpt-oss has %s", got.File, want.Name, got.DType,
				want.DType)
		case !slices.Equal(got.Shape, want.Shape):
			return fmt.Errorf("%s: tensor %s has shape %v, config.json calls for %v", got.File,
				want.Name, got.Shape, want.Shape)
		}
		c.tensors[want.Name] = got
		c.bytes += want.Bytes()
		delete(tensors, want.Name)
	}
	for name, t := range tensors {
		if partOfModel(name) {
			return fmt.Errorf(
				"%s holds tensor %s, which no gpt-oss of this config.json has: computing without "+
					"it would be another model", t.File, safetensors.Printable(name))
		}
		c.Ignored = append(c.Ignored, name)
	}
	slices.Sort(c.Ignored)
	return nil
}

// foreignTensors returns an error for a checkpoint with the config.json of a gpt-oss and another
// storage format.
func foreignTensors(tensors map[string]models.Tensor) error {
	for name, t := range tensors {
		printable := safetensors.Printable(name)
		switch {
		case strings.Contains(name, ".lora_A.") || strings.Contains(name, ".lora_B."):
			return fmt.Errorf(
				"%s holds tensor %s of a LoRA adapter: merge the adapter into its base model and "+
					"keep the experts in MXFP4", t.File, printable)
		case strings.HasSuffix(name, ".mlp.experts.gate_up_proj"),
			strings.HasSuffix(name, ".mlp.experts.down_proj"):
			return fmt.Errorf("%s: tensor %s is %s: %s",
				t.File, printable, t.DType, models.DequantisedExperts)
		case strings.HasSuffix(name, ".input_scale"), strings.HasSuffix(name, ".weight_scale"):
			return fmt.Errorf("%s holds tensor %s of a conversion with quantised activations: %s",
				t.File, printable, models.Advice)
		case strings.HasPrefix(name, "block.") && strings.Contains(name, ".mlp."):
			return fmt.Errorf(
				"%s holds tensor %s of the original/ layout, and its config.json is not of that "+
					"layout", t.File, printable)
		}
	}
	return nil
}

func partOfModel(name string) bool {
	if strings.HasSuffix(name, "rotary_emb.inv_freq") {
		return false // some tools store RoPE's frequencies, which follow from config.json
	}
	return strings.HasPrefix(name, "model.") || strings.HasPrefix(name, "lm_head.")
}
