package lora

// Adapters on experts. With PEFT's target_parameters, each of a layer's two matrices has a product
// for each expert, all in one pair of tensors. A pair of rank r is
//
//	A [experts x r, in]: expert e has rows e*r to e*r+r-1
//	B [out, r x experts]: expert e has columns e, e+experts, ...
//
// unsloth trains on a base in 4 bits with experts as modules, gate_up_projs.0 and so on: each has
// its own pair.
//
// They are added to numbers that are rounded to MXFP4 afterwards (package convert), never to MXFP4.

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/gguf"
)

// placeExperts finds the matrix of each pair by its shape: gate and up together are twice as wide.
func (a *Adapter) placeExperts(config models.LoRA, spec models.Spec) error {
	blocks := map[string][]int{}
	for _, t := range spec.Tensors() {
		blocks[t.Name] = t.Shape
	}
	for _, name := range slices.Sorted(maps.Keys(a.experts)) {
		c := a.experts[name]
		module, rest, _ := strings.Cut(name, " ")
		if c.a.Data == nil || c.b.Data == nil || c.saved.Data != nil {
			return fmt.Errorf("%s does not hold a pair of lora_A and lora_B for %s (%s)",
				WeightsName, module, rest)
		}
		target, expert := "", -1 // "1.weight", or "0.down_projs.3.weight"
		if parts := strings.Split(rest, "."); len(parts) == 4 {
			n, err := strconv.ParseUint(parts[2], 10, 16)
			if target = rest; err == nil {
				target, expert = module+"."+strings.TrimSuffix(parts[1], "s"), int(n)
			}
		}
		placed := false
		for _, matrix := range [...]string{module + ".gate_up_proj", module + ".down_proj"} {
			shape := blocks[matrix+"_blocks"] // experts, out, in / 32, 16
			existing := a.changes[matrix]
			used := existing != nil && (expert < 0 || existing.experts == nil ||
				existing.experts[expert] != nil)
			if shape == nil || used || target != "" && target != matrix || expert >= shape[0] {
				continue
			}
			named, experts := matrix, shape[0]
			if expert >= 0 {
				named, experts = fmt.Sprintf("%ss.%d", matrix, expert), 1
			}
			rank := config.Rank(named) * experts
			if slices.Equal(c.a.Shape, []int{rank, shape[2] * models.BlockSize}) &&
				slices.Equal(c.b.Shape, []int{shape[1], rank}) {
				c.scale, placed = config.Scale(named), true
				switch {
				case expert < 0:
					a.changes[matrix] = c
				case existing == nil:
					a.changes[matrix] = &change{experts: map[int]*change{expert: c}}
				default:
					existing.experts[expert] = c
				}
				break
			}
		}
		if !placed {
			return fmt.Errorf("%s: the pair of %v and %v fits no matrix of %s in %s%s", WeightsName,
				c.a.Shape, c.b.Shape, module, spec.Name, trainedOn(config))
		}
	}
	return nil
}

// AddExpert adds adapters' changes to the values of one expert's matrix, [out, in]. Sums are
// computed in float64 and rounded once, to float32.
func AddExpert(matrix string, expert, experts int, to []float32, list []*Adapter) {
	for _, one := range list {
		c, expert, experts := one.changes[matrix], expert, experts
		if c != nil && c.experts != nil {
			c, expert, experts = c.experts[expert], 0, 1
		}
		if c == nil {
			continue
		}
		all, in := c.a.Shape[0], c.a.Shape[1]
		rank := all / experts
		values := make([]float32, rank*in)
		size := len(values) * c.a.DType.Bits() / 8
		gguf.Floats(values, c.a.Data[expert*size:][:size], gguf.Kinds[c.a.DType])
		a, b, sum := make([]float64, len(values)), make([]float32, all), make([]float64, in)
		for i, v := range values {
			a[i] = float64(v)
		}
		for o := range c.b.Shape[0] {
			row(b, c.b, o, all)
			out := to[o*in:][:in]
			for i, v := range out {
				sum[i] = float64(v)
			}
			for r := range rank {
				addScaled(sum, a[r*in:][:in], one.Scale*c.scale*float64(b[r*experts+expert]))
			}
			for i, v := range sum {
				out[i] = float32(v)
			}
		}
	}
}
