package engine

import (
	"math"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// The published sizes, as arithmetic.

func TestPlanOfPublishedModels(t *testing.T) {
	for _, s := range []models.Spec{models.Spec20B(), models.Spec120B()} {
		plan := hosttest.Must(PlanFor(s,
			Settings{KVCacheDtype: "bf16", Pages: 10, MaxNumBatchedTokens: 100}))(t)
		if plan.Weights != s.WeightBytes() {
			t.Errorf("%s: weights of %d bytes are planned, the checkpoint has %d", s.Name,
				plan.Weights, s.WeightBytes())
		}
		// 2048 bytes of K and V for each position and layer, of which a page has half the layers.
		if want := int64(s.Layers/2) * PageTokens * 2048; plan.PageBytes != want {
			t.Errorf("%s: a page of %d bytes, not %d", s.Name, plan.PageBytes, want)
		}
		if plan.KV() != 10*plan.PageBytes || plan.Total() != plan.Weights+plan.KV()+plan.Scratch {
			t.Errorf("%s: %+v does not add up", s.Name, plan)
		}
		bigger := hosttest.Must(PlanFor(s, Settings{KVCacheDtype: "bf16", Pages: 10,
			MaxNumBatchedTokens: 200}))(t)
		if ratio := float64(bigger.Scratch) / float64(plan.Scratch); ratio < 1.95 || ratio > 2.05 {
			t.Errorf("%s: scratch of %d bytes for 100 rows, %d for 200", s.Name, plan.Scratch,
				bigger.Scratch)
		}
	}
}

// TestDecodeTraffic: a decoded token reads 3.71 GB of the 20b and 5.00 GB of the 120b.
func TestDecodeTraffic(t *testing.T) {
	for _, test := range []struct {
		spec models.Spec
		want float64
	}{{models.Spec20B(), 3.708e9}, {models.Spec120B(), 5.003e9}} {
		p := hosttest.Must(Record(test.spec, Settings{KVCacheDtype: "bf16"}, 1))(t)
		b := Batch{Tokens: []int32{0}, Seqs: []SeqRows{{Start: 0, Rows: 1}}, LogitRows: []int32{0}}
		sum := func() (n int64) {
			for _, op := range p.Ops {
				n += p.Bytes(op, p.WorkOf(&b))
			}
			return n
		}
		if got := float64(sum()); math.Abs(got/test.want-1) > 0.005 {
			t.Errorf("%s: %.4g bytes a token, not %.4g", test.spec.Name, got, test.want)
		}
		// The cache: 2048 bytes for each position, all in half the layers, at most 128 in the
		// others.
		empty := sum()
		b.Seqs[0].Start = 8191
		want := int64(test.spec.Layers/2) * 2048 * (8191 + 127)
		if got := sum() - empty; got != want {
			t.Errorf("%s: %d bytes of cache at position 8191, not %d", test.spec.Name, got, want)
		}
	}
}

// TestBatchTraffic: 64 rows read each dense weight once, and each expert at most once.
func TestBatchTraffic(t *testing.T) {
	p := hosttest.Must(Record(models.Spec20B(), Settings{}, 64))(t)
	b := Batch{Tokens: make([]int32, 64), LogitRows: make([]int32, 64)}
	var n int64
	for _, op := range p.Ops {
		for _, w := range op.W {
			if w != nil && op.Kind != Embed {
				n += p.BytesOf(w)
			}
		}
	}
	var all, activations int64
	work := p.WorkOf(&b)
	for _, op := range p.Ops {
		all += p.Bytes(op, work)
		for _, x := range append(append([]*Buffer{}, op.In...), op.Out...) {
			activations += p.moved(x, work)
		}
		switch op.Kind {
		case Embed:
			activations += 64 * 2880 * 2
		case Linear:
			if op.Add {
				activations += p.moved(op.Out[0], work)
			}
		case WriteKV:
			activations += 64 * PositionBytes(p.Spec, p.Settings.KVCacheDtype, op.Window > 0)
		}
	}
	if all-activations != n {
		t.Errorf("64 rows read %d bytes of weights, the model has %d", all-activations, n)
	}
}
