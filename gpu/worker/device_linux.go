package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/runtime/engine"
)

// The device as this side has it.

// Options of Start.
type Options struct {
	Program   []string          // the worker's executable and its arguments
	Wanted                      // what it is to open
	Log       func(line string) // is told what the worker says; nil: nobody
	Identity  Identity          // the zero value is Here()
	Deadlines Deadlines

	logits int64 // bytes of shared memory for logits; 0: logitsBytes
}

// Device is an engine.Device in another process. After the worker's end every call fails with ErrLost, but Free and Close.
type Device struct {
	c    *connection
	text deviceText

	mu    sync.Mutex
	users int // regions and steps not freed yet
}

var _ engine.Device = (*Device)(nil)

// Start runs a worker and opens its device.
func Start(o Options) (_ *Device, err error) {
	if o.Identity == (Identity{}) {
		o.Identity = Here()
	}
	if o.logits == 0 {
		o.logits = logitsBytes
	}
	if o.Deadlines.Step == 0 {
		if o.Deadlines.Step = stepDeadline; o.Place != nil {
			o.Deadlines.Step = placedDeadline
		}
	}
	if o.Deadlines.Setup == 0 {
		o.Deadlines.Setup = setupDeadline
	}
	s, file, err := newShared(o.logits)
	if err != nil {
		return nil, err
	}
	p, err := start(o.Program, file, o.Log)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("start the GPU worker: %w", err), s.close())
	}
	d := &Device{c: &connection{p: p, shared: s, deadlines: o.Deadlines}}
	if err := d.greet(o); err != nil {
		return nil, errors.Join(err, d.c.part())
	}
	return d, nil
}

// greet makes sure that the other side is of this build, and has it open the device.
func (d *Device) greet(o Options) error {
	var theirs Identity
	if err := d.c.call(hello, helloText{o.Identity, int64(len(d.c.shared.bytes))}, &theirs, nil, nil); err != nil {
		return err
	}
	if err := o.Identity.match(theirs); err != nil {
		return err
	}
	return d.c.call(open, openText{o.Wanted}, &d.text, nil, nil)
}

// Name is the device's own, and where it is.
func (d *Device) Name() string { return d.text.Name + ", in a process of its own" }

// Caps are the device's. A worker is there for a card.
func (d *Device) Caps() engine.Caps {
	caps := d.text.Caps
	caps.Discrete = true
	return caps
}

// Said is what the worker has to tell people of how it opened the device, in lines.
func (d *Device) Said() []string { return slices.Clone(d.text.Said) }

// Process is the worker's number.
func (d *Device) Process() int { return d.c.p.os.Pid }

// Lost is closed when the worker has ended.
func (d *Device) Lost() <-chan struct{} { return d.c.p.ended }

// Traffic is the messages that steps have cost so far.
func (d *Device) Traffic() Traffic {
	return Traffic{d.c.steps.Load(), d.c.sent.Load(), d.c.received.Load()}
}

// Memory is asked of the device; of a lost one nothing is free.
func (d *Device) Memory() (total, free int64) {
	var m memoryText
	if err := d.c.call(memory, nil, &m, nil, nil); err != nil {
		return d.text.Total, 0
	}
	return m.Total, m.Free
}

// Bandwidth is what a copy inside the card's memory reaches, in bytes a second.
func (d *Device) Bandwidth() (float64, error) {
	var b bandText
	err := d.c.call(bandwidth, nil, &b, nil, nil)
	return b.BytesPerSecond, err
}

// Trusted says what kernels the worker's card has and whether they are right, and a sentence for each that is not.
func (d *Device) Trusted() (summary string, wrong []string) {
	return d.text.Kernels, slices.Clone(d.text.Wrong)
}

// ProofsText has the worker hold its kernels to the plain ones, and is the outcome as JSON. The worker knows it too: what was wrong is out of use.
func (d *Device) ProofsText(context.Context) ([]byte, error) {
	var t proofsText
	err := d.c.call(prove, nil, &t, nil, nil)
	return t.Proofs, err
}

// RatesText is what the card multiplies, measured by the worker on it, as JSON.
func (d *Device) RatesText() ([]byte, error) {
	var t ratesText
	err := d.c.call(rates, nil, &t, nil, nil)
	return t.Rates, err
}

// Close ends the worker.
func (d *Device) Close() error {
	d.mu.Lock()
	users := d.users
	d.mu.Unlock()
	if users > 0 && !d.gone() {
		return fmt.Errorf("%s is closed with %d regions and steps in use", d.Name(), users)
	}
	return d.c.part()
}

// gone tells whether the worker has ended.
func (d *Device) gone() bool {
	select {
	case <-d.c.p.ended:
		return true
	default:
		return false
	}
}

// use counts something that must be freed before Close.
func (d *Device) use(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users += n
}

// region is memory of the worker's device, by its number.
type region struct {
	d      *Device
	number uint32 // 0 once it is freed
	bytes  int64
}

// make asks for a region.
func (d *Device) make(k kind, ask any) (*region, error) {
	var t regionText
	if err := d.c.call(k, ask, &t, nil, nil); err != nil {
		return nil, err
	}
	d.use(1)
	return &region{d, t.Region, t.Bytes}, nil
}

// Alloc makes a zeroed region.
func (d *Device) Alloc(bytes int64) (engine.Region, error) {
	return answered(d.make(alloc, allocText{bytes}))
}

// Upload has the worker open the file that data is a view of. Data of no file goes through the shared memory.
func (d *Device) Upload(data []byte) (engine.Region, error) {
	if part, ok := partOf(data); ok {
		r, err := d.make(uploadOne, part)
		if err == nil || !errors.Is(err, errOtherFile) {
			return answered(r, err)
		}
	}
	r, err := d.Alloc(int64(len(data)))
	if err != nil {
		return nil, err
	}
	if err := r.Write(0, data); err != nil {
		return nil, errors.Join(fmt.Errorf("upload %d bytes: %w", len(data), err), r.Free())
	}
	return r, nil
}

func (r *region) Bytes() int64 { return r.bytes }

func (r *region) check(offset int64, n int) error {
	if r.number == 0 {
		return errors.New("this region has been freed")
	}
	if offset < 0 || offset > r.bytes-int64(n) {
		return fmt.Errorf("%d bytes at %d of a region of %d", n, offset, r.bytes)
	}
	return nil
}

// Read copies a piece at a time.
func (r *region) Read(offset int64, dst []byte) error {
	if err := r.check(offset, len(dst)); err != nil {
		return err
	}
	for len(dst) > 0 {
		n := min(len(dst), pieceBytes)
		err := r.d.c.call(readPart, partText{r.number, offset, int64(n)}, nil, nil, func(answer []byte) error {
			if len(answer) != n {
				return fmt.Errorf("%d of %d bytes were read", len(answer), n)
			}
			copy(dst, answer)
			return nil
		})
		if err != nil {
			return err
		}
		dst, offset = dst[n:], offset+int64(n)
	}
	return nil
}

// Write copies a piece at a time.
func (r *region) Write(offset int64, src []byte) error {
	if err := r.check(offset, len(src)); err != nil {
		return err
	}
	for len(src) > 0 {
		n := min(len(src), pieceBytes)
		err := r.d.c.call(writePart, partText{r.number, offset, int64(n)}, nil, func(slot []byte) int { return copy(slot, src[:n]) }, nil)
		if err != nil {
			return err
		}
		src, offset = src[n:], offset+int64(n)
	}
	return nil
}

// Free gives the memory back. A lost worker's is given back already.
func (r *region) Free() error {
	if r.number == 0 {
		return nil
	}
	number := r.number
	r.number = 0
	r.d.use(-1)
	return r.d.forget(r.d.c.call(free, partText{Region: number}, nil, nil, nil))
}

// forget takes no offence at a worker that is gone with what was to be given back.
func (d *Device) forget(err error) error {
	if errors.Is(err, ErrLost) {
		return nil
	}
	return err
}
