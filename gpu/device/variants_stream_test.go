package device

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// The stream kernels: where they are used, what they compute, and the variable that names them.

const streamKernels = "stream_experts, stream_experts_bf16"
const streamWarpgroups = "stream_experts_wgmma"

// TestStreamTaken: only where they are asked for, the mode rounds and experts have few tokens; a
// wrong one is replaced like any other.
func TestStreamTaken(t *testing.T) {
	some := "prefill_qkv_wgmma:1 prefill_attend_bf16:2 prefill_linear_direct_wgmma:1 "
	many := "prefill_qkv_wgmma:2 prefill_attend_bf16:2 prefill_linear_wgmma:2 " +
		"norm:1 prefill_linear:1 route:2 "
	few := "decode_qkv:1 decode_attend:1 decode_linear:1 "
	bf16, mx := engine.Settings{Compute: engine.Rounded}, engine.Settings{Compute: engine.MX}
	for _, x := range []struct {
		name, arch, forced string
		o                  engine.Settings
		rows               int
		want               string
	}{
		{"nothing asked for", "sm_90", "", bf16, 8,
			few + "decode_route:1 decode_gate_up:1 decode_down:1"},
		{"one row", "sm_90", streamKernels, bf16, 1,
			few + "decode_route:1 stream_experts:2 combine:1"},
		{"eight rows", "sm_90", streamKernels, bf16, 8,
			few + "decode_route:1 stream_experts:2 combine:1"},
		{"float32", "sm_90", streamKernels, engine.Settings{KVCacheDtype: "bf16"}, 8,
			few + "decode_route:1 decode_gate_up:1 decode_down:1"},
		{"some rows", "sm_90", streamKernels, bf16, 64,
			some + "decode_route:1 stream_experts_bf16:2 combine:1"},
		{"by warpgroups", "sm_90", streamWarpgroups, bf16, 9,
			some + "decode_route:1 stream_experts_wgmma:2 combine:1"},
		{"many rows", "sm_90", streamKernels, bf16, 300,
			many + "prefill_gate_up_wgmma:3 combine:1"},
		{"eight rows on the unit", "sm_90", "decode_qkv_unit,decode_linear_unit", bf16, 8,
			"decode_qkv_unit:1 decode_attend:1 decode_linear_unit:1 " +
				"decode_route:1 decode_gate_up:1 decode_down:1"},
		{"few rows of MXFP4", "sm_120", streamKernels, mx, 8,
			few + "decode_route:1 stream_experts:2 combine:1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Setenv(forcedKernels, x.forced)
			dev, _ := openWith(t, driver.CUDA, Options{Arch: x.arch})
			x.o.Pages = 4
			if got := shown(compiled(t, dev, x.o, x.rows), 0); got != x.want {
				t.Errorf("%s\nnot %s", got, x.want)
			}
			if !strings.Contains(x.want, "stream_experts:") {
				return
			}
			dev.Disable(StreamExperts)
			if got := shown(compiled(t, dev, x.o, x.rows), 0); !strings.Contains(got,
				"decode_gate_up:1 decode_down:1") {
				t.Error(got)
			}
		})
	}
}

// TestForcedKernelsAreNames: a name that is no variant's is an error that says so.
func TestForcedKernelsAreNames(t *testing.T) {
	t.Setenv(forcedKernels, "decode_down,stream_up")
	if list, _, err := readForced(); err == nil || !strings.Contains(err.Error(), `"stream_up"`) {
		t.Errorf("%v, %v", list, err)
	}
}

// TestSerial: launches overlap on a card whose kernels wait for each other, unless that is off, and
// not those of deterministic steps.
func TestSerial(t *testing.T) {
	for _, x := range []struct {
		arch, forced    string
		steady, overlap bool
	}{{"sm_90", "", false, true}, {"sm_86", "", false, false}, {"sm_90", "", true, false},
		{"sm_90", "stream_experts, serial", false, false}} {
		t.Run(x.arch+" "+x.forced, func(t *testing.T) {
			t.Setenv(forcedKernels, x.forced)
			dev, f := openWith(t, driver.CUDA, Options{Arch: x.arch})
			eng := hosttest.Must(engine.New(dev, tiny(t),
				engine.Settings{Pages: 4, MaxNumBatchedTokens: 2, Deterministic: x.steady}))(t)
			if got := f.Calls("cuLaunchKernelEx") > 0; got != x.overlap {
				t.Errorf("overlap %v", got)
			}
			hosttest.Check(t, eng.Close())
		})
	}
}

// TestStreamLogits: on both vendors' warps and in both forms, logits are those of the other kernels
// up to rounding.
func TestStreamLogits(t *testing.T) {
	for _, x := range drivertest.Some(2, []struct {
		api   driver.API
		rows  int
		bound float32
	}{{driver.CUDA, 2, 1e-3}, {driver.HIP, 17, 2e-2}, {driver.CUDA, 17, 2e-2},
		{driver.HIP, 2, 1e-3}}) {
		b := prompt()
		for i := len(b.Tokens); i < x.rows; i++ {
			b.Tokens = append(b.Tokens, int32(7*i%90))
		}
		b.Seqs[0].Rows, b.LogitRows[0] = int32(x.rows), int32(x.rows-1)
		var logits [3][]float32
		for i, forced := range []string{streamKernels, streamWarpgroups, ""} {
			t.Run(fmt.Sprintf("%s %d rows %q", x.api, x.rows, forced), func(t *testing.T) {
				t.Setenv(forcedKernels, forced)
				dev, _ := open(t, x.api)
				ckpt := tiny(t)
				eng := hosttest.Must(engine.New(dev, ckpt, engine.Settings{Pages: 4,
					MaxNumBatchedTokens: x.rows, Compute: engine.Rounded, KVCacheDtype: "f32"}))(t)
				logits[i] = make([]float32, ckpt.Spec.Vocab)
				hosttest.Check(t, eng.Step(t.Context(), b, logits[i]))
				hosttest.Check(t, eng.Close())
			})
		}
		near(t, logits[0], logits[2], x.bound)
		near(t, logits[1], logits[2], x.bound)
		largest := slices.Max(logits[2])
		if !t.Failed() && largest < 0.1 {
			t.Errorf("nothing to compare: the largest logit is %g", largest)
		}
	}
}
