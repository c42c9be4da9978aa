package q8

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// at reads one weight from a copy.
func at(data []byte, k, row, column int) float64 {
	block := data[row/8*GroupBytes(k)+column/32*blockBytes:]
	i := column % 32
	j := i/8*8 + i%2*4 + i%8/2
	scale := math.Float32frombits(uint32(binary.LittleEndian.Uint16(block[2*(row%8):])) << 16)
	return float64(scale) * float64(int8(block[16+j/4*32+row%8*4+j%4]))
}

// TestQuantize: every weight is within half a step of its block, whose scale is the best of those
// that clip nothing, and padding is zero.
func TestQuantize(t *testing.T) {
	const n, k = 13, 96
	random := rand.New(rand.NewPCG(3, 4))
	src := make([]byte, 2*n*k)
	value := func(i int) float64 {
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16))
	}
	for i := range n * k {
		v := float32(random.NormFloat64() * math.Pow(2, float64(random.IntN(20)-10)))
		if i/32%5 == 0 {
			v = 0
		}
		binary.LittleEndian.PutUint16(src[2*i:], uint16(math.Float32bits(v)>>16))
	}
	dst := bytes.Repeat([]byte{0xff}, Groups(n)*GroupBytes(k))
	Quantize(dst, src, n, k)
	for r := range n {
		for b := range k / 32 {
			largest := 0.0
			for i := range 32 {
				largest = max(largest, math.Abs(value(r*k+b*32+i)))
			}
			sum := 0.0
			for i := range 32 {
				got, want := at(dst, k, r, b*32+i), value(r*k+b*32+i)
				if sum += (got - want) * (got - want); math.Abs(got-want) > largest/127*0.55 {
					t.Fatalf("row %d, column %d is %v, want %v", r, b*32+i, got, want)
				}
			}
			for code := math.Float32bits(float32(largest)/127) >> 16; ; code++ {
				scale, other := float64(math.Float32frombits(code<<16)), 0.0
				if scale < largest/127 {
					continue // it would cut off
				}
				if largest == 0 || scale > 1.08*largest/127 {
					break
				}
				for i := range 32 {
					want := value(r*k + b*32 + i)
					rest := want - scale*math.RoundToEven(want/scale)
					other += rest * rest
				}
				if sum > 1.0001*other {
					t.Fatalf("row %d, block %d: an error of %g, %g with %g", r, b, sum, other, scale)
				}
			}
		}
	}
	for r := n; r < 16; r++ {
		for i := range k {
			if at(dst, k, r, i) != 0 {
				t.Fatalf("padding row %d is not zero", r)
			}
		}
	}
}

func synthetic(t *testing.T, seed uint64) *checkpoint.Checkpoint {
	t.Helper()
	s := models.Spec20B()
	s.Layers, s.Hidden, s.Intermediate, s.Vocab, s.Experts = 2, 64, 32, writeRows+100, 4
	ckpt := hosttest.Must(checkpoint.Synthetic(s, seed))(t)
	t.Cleanup(func() { ckpt.Close() })
	return ckpt
}

func open(t *testing.T, ckpt *checkpoint.Checkpoint, folder string) *Copy {
	t.Helper()
	c := hosttest.Must(Open(ckpt, folder))(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestFile: the file equals the copy in memory, is created once, and differs for other weights.
func TestFile(t *testing.T) {
	folder, ckpt := filepath.Join(t.TempDir(), "dense"), synthetic(t, 1)
	memory, file := open(t, ckpt, ""), open(t, ckpt, folder)
	const name = "model.layers.1.self_attn.o_proj.weight"
	if !bytes.Equal(memory.Tensor("lm_head.weight"), file.Tensor("lm_head.weight")) ||
		!bytes.Equal(memory.Tensor(name), file.Tensor(name)) ||
		len(file.Tensor(name)) != Groups(64)*GroupBytes(4096) ||
		file.Tensor("model.embed_tokens.weight") != nil {
		t.Error("the file does not hold what was made in memory")
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 1 || !strings.HasSuffix(files[0].Name(), Suffix) {
		t.Fatalf("the folder holds %v, %v", files, err)
	}
	path := filepath.Join(folder, files[0].Name())
	before := hosttest.Must(os.Stat(path))(t)
	open(t, ckpt, folder)
	if after, err := os.Stat(path); err != nil || after.ModTime() != before.ModTime() {
		t.Error("an existing copy was made again")
	}
	open(t, synthetic(t, 2), folder)
	if files, err := os.ReadDir(folder); err != nil || len(files) != 2 {
		t.Errorf("other weights gave %d files, %v", len(files), err)
	}
}
