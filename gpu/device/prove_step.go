package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
)

// A step in one launch is proved against its phases: from the same memory both must leave the same,
// bit for bit. It is proved only where it was chosen: on a card that cannot hold its barrier over
// the grid, the launch never ends.

// proveStep tries both kinds of cache, each with the kernels of one row and of several.
func (d *Device) proveStep(ctx context.Context) (Proof, error) {
	p := Proof{Variant: DecodeStep, OK: true}
	for _, x := range []trial{
		{"one launch, f32 cache", engine.Settings{KVCacheDtype: "f32"}, 4, 2, nil},
		{"one launch, bf16 cache", engine.Settings{KVCacheDtype: "bf16"}, 1, 1, nil},
	} {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		why, err := d.proveWhole(x)
		if err != nil {
			return p, fmt.Errorf("%s: %w", x.name, err)
		}
		if why != "" && p.OK {
			p.OK, p.Why = false, fmt.Sprintf("%s, in a step of up to %d rows", why, x.rows)
		}
	}
	return p, nil
}

// proveWhole says what is wrong; err is about what else did not run.
func (d *Device) proveWhole(x trial) (why string, err error) {
	v := &prover{resources: resources{d: d}, spec: proofSpec()}
	defer func() { err = errors.Join(err, v.close()) }()
	if err := v.open(x); err != nil {
		return "", err
	}
	s := v.fast
	if s.whole == nil {
		return "a kernel of its phases is out of use, or it does not fit on the GPU", nil
	}
	if err := d.wait(func() error { return s.sendState(v.batch, nil) }); err != nil {
		return "", err
	}
	if err := v.save(); err != nil {
		return "", err
	}
	want, err := v.leaves(s.launchAll)
	if err != nil {
		return "", err
	}
	if err := v.putBack(); err != nil {
		return "", err
	}
	got, err := v.leaves(s.queueWhole)
	if errors.Is(err, driver.ErrLost) {
		return "", crashed(err, DecodeStep)
	}
	if err != nil {
		return err.Error(), nil
	}
	for i, part := range []string{"the logits", "the cache", "the activations"} {
		if !bytes.Equal(want[i], got[i]) {
			return part + " differ from what its phases leave one by one", nil
		}
	}
	return "", nil
}

// leaves runs a step with its logits set to NaN, and reads all that it may have written.
func (v *prover) leaves(step func() error) (all [3][]byte, err error) {
	logits := v.fast.logits
	if err := logits.Write(0, bytes.Repeat([]byte{0xff}, int(logits.Bytes()))); err != nil {
		return all, err
	}
	if err := v.d.wait(step); err != nil {
		return all, err
	}
	for i, r := range []*region{logits.region, v.cache, v.arena} {
		all[i] = make([]byte, r.Bytes())
		if err := r.Read(0, all[i]); err != nil {
			return all, err
		}
	}
	return all, nil
}
