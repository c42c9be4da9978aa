package device

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// A cache of 8 bits: its pages are the CPU engine's, and the kernels of each layer are those of its
// type.

// TestFP8PagesAreTheCPUs: the same keys and values leave the same bytes in every page, twins too,
// whatever the numbers are.
func TestFP8PagesAreTheCPUs(t *testing.T) {
	host := hosttest.Must(cpu.New(1))(t)
	defer host.Close()
	want := pagesOf(t, host)
	for _, api := range apis {
		dev, _ := open(t, api)
		if got := pagesOf(t, dev); !bytes.Equal(got, want) {
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%s: byte %d of the pool is %#x, the CPU's %#x", api, i, got[i],
						want[i])
				}
			}
		}
	}
}

// pagesOf is a pool after two steps that wrote keys and values of six layers.
func pagesOf(t *testing.T, dev engine.Device) []byte {
	t.Helper()
	spec := proofSpec()
	spec.Layers = 6 // of the three windowed ones the third is in the twins
	const pages = 13
	p := hosttest.Must(engine.NewProgram(spec,
		engine.Settings{KVCacheDtype: engine.KVFP8, Pages: pages}, 40))(t)
	width := (spec.Heads + 2*spec.KVHeads) * spec.HeadDim
	var qkv []*engine.Buffer
	for layer := range spec.Layers {
		qkv = append(qkv, p.Scratch("qkv"+string(rune('0'+layer)), engine.F32, engine.PerRow,
			width))
		p.WriteKV("kv", layer, qkv[layer])
	}
	arena, err1 := dev.Alloc(p.Layout())
	pool, err2 := dev.Alloc(p.BytesOf(p.KV()))
	hosttest.Check(t, errors.Join(err1, err2))
	for _, b := range qkv {
		b.Region = arena
	}
	p.KV().Region = pool
	step := hosttest.Must(dev.Compile(p))(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, b := range fp8Steps(pages) {
		for _, x := range qkv {
			hosttest.Check(t, x.Region.Write(x.Offset, anyNumbers(random, len(b.Tokens)*width)))
		}
		hosttest.Check(t, step.Forward(b, nil, nil))
	}
	data := make([]byte, pool.Bytes())
	hosttest.Check(t, errors.Join(pool.Read(0, data), step.Close(), arena.Free(), pool.Free()))
	return data
}

// fp8Steps are 40 rows of two sequences and then a row of each.
func fp8Steps(pages int) []*engine.Batch {
	twins := make([]int32, pages)
	for i := range twins {
		twins[i] = -1
	}
	twins[9], twins[1], twins[5], twins[7] = 0, 10, 12, 3
	seqs := func(a, b, n int32) []engine.SeqRows {
		return []engine.SeqRows{{Start: a, Rows: n, Full: []int32{4, 11}, Window: []int32{9, 1}},
			{Start: b, Rows: 40 - n, Full: []int32{8, 2}, Window: []int32{5, 7}}}
	}
	first := &engine.Batch{Tokens: make([]int32, 40), Seqs: seqs(0, 0, 35), Twins: twins}
	second := &engine.Batch{Tokens: make([]int32, 2), Seqs: seqs(35, 5, 1), Twins: twins}
	second.Seqs[1].Rows = 1
	return []*engine.Batch{first, second}
}

// anyNumbers are float32 of any bits and, as many, of the sizes that keys and values have.
func anyNumbers(random *rand.Rand, n int) []byte {
	data := make([]byte, 0, 4*n)
	for i := range n {
		bits := random.Uint32()
		if i%2 == 0 {
			bits = math.Float32bits(float32(random.NormFloat64() * 4))
		}
		data = binary.NativeEndian.AppendUint32(data, bits)
	}
	return data
}

// TestFP8Kernels: a window layer has the kernels of bf16, a full one those of 8 bits, in steps of
// few rows and of many.
func TestFP8Kernels(t *testing.T) {
	dev, _ := open(t, driver.CUDA)
	for _, x := range []struct {
		name         string
		rows         int
		window, full string
	}{
		{"decode", 4, "decode_qkv_bf16_4 decode_attend_bf16 ", "decode_qkv_f8_4 decode_attend_f8 "},
		{"prefill", 64, "prefill_qkv_direct_wgmma prefill_attend_1 ",
			"write_kv_f8 prefill_attend_f8_1 "},
	} {
		s := compiled(t, dev, engine.Settings{Pages: 6, KVCacheDtype: engine.KVFP8,
			Compute: engine.Rounded}, x.rows)
		for layer, want := range []string{x.window, x.full} {
			if got := launched(s, layer); !bytes.Contains([]byte(got), []byte(want)) {
				t.Errorf("%s, layer %d: %s, without %s", x.name, layer, got, want)
			}
		}
	}
}
