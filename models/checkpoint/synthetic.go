package checkpoint

// A checkpoint of random weights in memory, with the right sizes and a plausible spread, for
// measuring speed without real weights. Its answers have no meaning.

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/pack"
	"github.com/ossrun/ossrun/models/safetensors"
)

// patternBytes is the amount of each kind of weight that is drawn; larger tensors repeat it from
// other offsets, in memory of their own.
const patternBytes = 8 << 20

// Synthetic makes a checkpoint of shape s with random weights, the same for the same seed: 13.8 GB
// of memory for the 20b. Experts are chosen nearly evenly and activations stay finite. Close frees
// it.
func Synthetic(s models.Spec, seed uint64) (*Checkpoint, error) {
	return synthetic(s, s.Layers, seed)
}

// SyntheticUploaded is Synthetic for a device with its own memory, where each layer's weights are
// separate. Here all layers share one layer's bytes.
func SyntheticUploaded(s models.Spec, seed uint64) (*Checkpoint, error) {
	return synthetic(s, 1, seed)
}

// SyntheticBytes is the host memory that SyntheticUploaded takes.
func SyntheticBytes(s models.Spec) int64 {
	s.Layers = 1
	return s.WeightBytes()
}

// synthetic reserves memory for this many layers, which the others share.
func synthetic(s models.Spec, distinct int, seed uint64) (*Checkpoint, error) {
	if s.Hidden%models.BlockSize != 0 || s.Intermediate%models.BlockSize != 0 || s.Layers < 1 ||
		s.Experts < s.ExpertsPerToken {
		return nil, fmt.Errorf("a model of %d layers, %d wide with experts of %d, cannot be made",
			s.Layers, s.Hidden, s.Intermediate)
	}
	one := s
	one.Layers = distinct
	memory, err := pack.Reserve(one.WeightBytes())
	if err != nil {
		return nil, fmt.Errorf("%d bytes for random weights: %w", one.WeightBytes(), err)
	}
	mapping.PreferHugePages(memory.Bytes) // as mapped weights have them
	random := rand.New(rand.NewPCG(seed, 0))
	draw := newPatterns(random)
	c := &Checkpoint{Spec: s, format: views{}, tensors: map[string]models.Tensor{},
		bytes: s.WeightBytes(), close: []func() error{memory.Free}}
	rest := memory.Bytes
	for _, t := range s.Tensors() {
		if first, shared := c.tensors[ownerOf(t.Name, distinct)]; shared {
			first.Name = t.Name
			c.tensors[t.Name] = first
			continue
		}
		data := rest[:t.Bytes():t.Bytes()]
		rest = rest[t.Bytes():]
		repeat(data, draw.pick(t), random)
		c.tensors[t.Name] = models.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Data: data,
			File: "random weights"}
	}
	return c, nil
}

// ownerOf returns the tensor whose bytes a layer's tensor shares, "" if it has its own.
func ownerOf(name string, distinct int) string {
	var layer int
	if _, err := fmt.Sscanf(name, layerName, &layer); err != nil || layer < distinct {
		return ""
	}
	_, rest, _ := strings.Cut(strings.TrimPrefix(name, "model.layers."), ".")
	return fmt.Sprintf(layerName, layer%distinct) + rest
}

const layerName = "model.layers.%d."

// patterns are random weights of each kind.
type patterns struct{ matrix, unit, small, blocks, scales []byte }

func newPatterns(random *rand.Rand) patterns {
	p := patterns{
		matrix: normals(random, patternBytes, 0, 0.02),
		unit:   normals(random, 1<<16, 1, 0.1),
		small:  normals(random, 1<<16, 0, 0.02),
		blocks: make([]byte, patternBytes),
		scales: make([]byte, patternBytes),
	}
	for i := 0; i < patternBytes; i += 8 {
		binary.LittleEndian.PutUint64(p.blocks[i:], random.Uint64())
	}
	for i := range p.scales { // 2^-9 .. 2^-6, so that products are about as large as their inputs
		p.scales[i] = 118 + p.blocks[i]&3
	}
	return p
}

func normals(random *rand.Rand, bytes int, mean, deviation float64) []byte {
	data := make([]byte, bytes)
	for i := 0; i < bytes; i += 2 {
		value := math.Float32bits(float32(mean + deviation*random.NormFloat64()))
		binary.LittleEndian.PutUint16(data[i:], uint16(value>>16))
	}
	return data
}

func (p patterns) pick(t models.TensorSpec) []byte {
	switch {
	case t.DType == safetensors.U8 && strings.HasSuffix(t.Name, "_scales"):
		return p.scales
	case t.DType == safetensors.U8:
		return p.blocks
	case strings.HasSuffix(t.Name, "norm.weight"):
		return p.unit
	case len(t.Shape) == 1:
		return p.small
	}
	return p.matrix
}

// repeat fills data with a pattern from a random offset.
func repeat(data, pattern []byte, random *rand.Rand) {
	start := random.IntN(len(pattern)/64) * 64
	for len(data) > 0 {
		n := copy(data, pattern[start:])
		data, start = data[n:], 0
	}
}
