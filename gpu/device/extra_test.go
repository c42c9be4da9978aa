package device

import (
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestMemoryIsAsPlanned: after every step was made and tokens were sampled, an engine has taken
// exactly the bytes of engine.PlanFor and Extra, by the driver's count.
func TestMemoryIsAsPlanned(t *testing.T) {
	for _, x := range drivertest.Some(1, []struct {
		name, model, arch string
		api               driver.API
		o                 engine.Settings
	}{
		{"8-bit dense weights", "T2", "sm_90", driver.CUDA, engine.Settings{Compute: engine.Rounded,
			Dense: engine.DenseQ8, MaxNumBatchedTokens: 3, MaxLogits: 2}},
		{"as released", "T1", "sm_90", driver.CUDA, engine.Settings{Compute: engine.Rounded,
			MaxNumBatchedTokens: 20, MaxLogits: 3}},
		{"a cache of 8 bits", "T1", "sm_90", driver.CUDA, engine.Settings{Compute: engine.Rounded,
			KVCacheDtype: engine.KVFP8, MaxNumBatchedTokens: 20, MaxLogits: 3, MaxNumSeqs: 4}},
		{"exact", "T2", "gfx942", driver.HIP, engine.Settings{MaxNumBatchedTokens: 18}},
		{"MXFP4 twice", "T2", "sm_120", driver.CUDA, engine.Settings{Compute: engine.MX,
			MaxNumBatchedTokens: 40, MaxLogits: 2, MaxNumSeqs: 2}},
		{"8-bit activations", "T1", "gfx942", driver.HIP, engine.Settings{Compute: engine.Int8,
			KVCacheDtype: "f32", MaxNumBatchedTokens: 2}},
		{"deterministic", "T2", "sm_90", driver.CUDA, engine.Settings{Deterministic: true,
			Compute: engine.Rounded, MaxNumBatchedTokens: 17, MaxLogits: 1}},
	}) {
		t.Run(x.name, func(t *testing.T) {
			dev, _ := openWith(t, x.api, Options{Arch: x.arch})
			ckpt := hosttest.Must(checkpoint.Open(testdata + x.model + "/checkpoint"))(t)
			t.Cleanup(func() { ckpt.Close() })
			x.o.Pages = 3
			var twins []int32
			if x.o.KVCacheDtype == engine.KVFP8 {
				x.o.Pages, twins = 5, []int32{3, -1, 4, -1, -1}
			}
			plan := hosttest.Must(engine.PlanFor(ckpt.Spec, x.o))(t)
			extra := hosttest.Must(Extra(ckpt.Spec, x.o, dev.Unit()))(t)
			before := taken(t, dev)
			eng := hosttest.Must(engine.New(dev, ckpt, x.o))(t)
			if got := taken(t, dev) - before; got > plan.Total()+extra {
				t.Errorf("%d bytes are taken by loading alone, %d were planned", got, plan.Total()+
					extra)
			}
			first := prompt()
			first.Twins = twins
			sampleOne(t, eng, first, engine.SamplingParams{Draw: engine.Draw{TopP: 1}})
			for _, rows := range engine.Buckets(x.o.MaxNumBatchedTokens) {
				b := &engine.Batch{Tokens: make([]int32, rows), Rebuild: true, Twins: twins,
					Seqs: []engine.SeqRows{{Rows: int32(rows), Full: []int32{1, 1},
						Window: []int32{2, 0}}}}
				hosttest.Check(t, eng.Step(t.Context(), b, nil))
			}
			if got := taken(t, dev) - before; got != plan.Total()+extra {
				t.Errorf("%d bytes are taken, %d weights, cache and scratch and %d beside were "+
					"planned: %+d", got, plan.Total(), extra, got-plan.Total()-extra)
			}
			if err := eng.Close(); err != nil {
				t.Error(err)
			}
			if left := taken(t, dev); left != before {
				t.Errorf("%d bytes are left", left-before)
			}
		})
	}
}

// taken is the used memory of a card.
func taken(t *testing.T, dev *Device) int64 {
	t.Helper()
	total, free, err := dev.ctx.Memory()
	hosttest.Check(t, err)
	return total - free
}
