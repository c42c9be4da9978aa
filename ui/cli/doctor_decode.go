// The two ways in which a GPU's decode steps are launched, side by side: which is faster on a card is known only where
// both have run. No card has told yet, so the graph is the default whatever this says.

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
)

// decodeReport is the part of --selftest that times one stream by each decode kernel.
type decodeReport struct {
	Kernel          device.DecodeKernel `json:"kernel"`
	TokensPerSecond float64             `json:"tokens_per_s"`
	GBs             float64             `json:"gb_per_s"`
}

// choosesDecodeKernel is a card of this process.
type choosesDecodeKernel interface {
	UseDecodeKernel(device.DecodeKernel)
	DecodeKernel() device.DecodeKernel
}

// decodeKernels times a token of one stream by each decode kernel, on the model that the self-test runs whole.
func (r *doctorReport) decodeKernels(ctx context.Context, out io.Writer, dev gpuUnderTest, ckpt *checkpoint.Checkpoint, t gpuSelftest) error {
	card, here := dev.(choosesDecodeKernel)
	if !here {
		fmt.Fprintln(out, "decode kernels: not compared; the GPU is in a process of its own")
		return nil
	}
	defer card.UseDecodeKernel(card.DecodeKernel())
	for _, k := range []device.DecodeKernel{device.DecodeGraph, device.DecodePersistent} {
		wrong := func(p device.Proof) bool { return p.Form == device.DecodeStep && !p.OK }
		if k == device.DecodePersistent && slices.ContainsFunc(r.Kernels, wrong) {
			fmt.Fprintf(out, "one stream, decode kernel %s: not timed, it was found wrong\n", k)
			continue
		}
		card.UseDecodeKernel(k)
		point := []device.Point{{Sequences: 1, Rows: 1}}
		err := device.Whole(ctx, dev, ckpt, engine.Settings{KVCacheDtype: "bf16"}, point, 4*t.rounds, func(s device.Speed) {
			r.Decode = append(r.Decode, decodeReport{k, s.TokensPerSecond, s.GBs})
			fmt.Fprintf(out, "one stream, decode kernel %-10s %9.1f tokens/s %9.1f GB/s\n", k, s.TokensPerSecond, s.GBs)
		})
		if err != nil {
			return fmt.Errorf("decode kernel %s: %w", k, err)
		}
	}
	faster := slices.MaxFunc(r.Decode, func(a, b decodeReport) int { return cmp.Compare(a.TokensPerSecond, b.TokensPerSecond) })
	fmt.Fprintf(out, "the faster here: OSSRUN_DECODE_KERNEL=%s\n", faster.Kernel)
	return nil
}
