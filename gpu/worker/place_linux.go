package worker

import (
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/runtime/engine"
)

// Memory over several devices, on the worker's side. The worker records the engine's program itself: both sides are of one build, so it is the same.

// place answers what only a device made of several can.
func (s *server) place(m *message) (*message, error) {
	dev, ok := s.dev.(engine.Placer)
	if !ok {
		return nil, fmt.Errorf("%s is one device: %q is for several", s.dev.Name(), m.kind)
	}
	switch m.kind {
	case plan:
		return s.plan(m)
	case mostPages:
		return askedPages(dev, m)
	}
	if s.planned == nil {
		return nil, fmt.Errorf("%q before a plan", m.kind)
	}
	switch m.kind {
	case allocFor:
		return s.allocFor(dev, m)
	case gather:
		return s.gather(m)
	}
	return s.uploadFor(dev, m)
}

func (s *server) plan(m *message) (*message, error) {
	t, err := ask[planText](m)
	if err != nil {
		return nil, err
	}
	if t.Rows < 1 || t.Rows > mostRows {
		return nil, fmt.Errorf("a program of %d rows", t.Rows)
	}
	if err := checkSpec(t.Spec); err != nil {
		return nil, err
	}
	s.planned, err = engine.Record(t.Spec, t.Options, t.Rows)
	return &message{kind: done}, err
}

func askedPages(dev engine.Placer, m *message) (*message, error) {
	t, err := ask[askPages](m)
	if err != nil {
		return nil, err
	}
	if rows := t.Options.Rows(); rows < 1 || rows > mostRows {
		return nil, fmt.Errorf("a program of %d rows", rows)
	}
	if err := checkSpec(t.Spec); err != nil {
		return nil, err
	}
	n, err := dev.MostPages(t.Spec, t.Options, t.Utilization)
	if err != nil {
		return nil, err
	}
	return tell(pagesText{n})
}

func (s *server) allocFor(dev engine.Placer, m *message) (*message, error) {
	t, err := ask[homeText](m)
	if err != nil {
		return nil, err
	}
	r, err := dev.AllocFor(s.planned, t.Home)
	if err != nil {
		return nil, err
	}
	return s.hold(r, nil)
}

// gather takes the next bytes of a weight; those at 0 begin one. It grows with what arrives.
func (s *server) gather(m *message) (*message, error) {
	t, err := ask[gatherText](m)
	if err != nil {
		return nil, err
	}
	if t.Offset == 0 {
		s.gathered = nil
	}
	if t.Offset != int64(len(s.gathered)) || t.Bytes < 1 || t.Bytes != int64(m.shared) {
		return nil, fmt.Errorf("%d bytes at %d, %d are sent behind %d", t.Bytes, t.Offset, m.shared, len(s.gathered))
	}
	s.gathered = append(s.gathered, s.shared.slot(m.number)[:t.Bytes]...)
	return &message{kind: done}, nil
}

func (s *server) uploadFor(dev engine.Placer, m *message) (*message, error) {
	t, err := ask[weightText](m)
	if err != nil {
		return nil, err
	}
	b := s.planned.Buffer(t.Buffer)
	if b == nil || b.Home != engine.Weight || s.planned.BytesOf(b) != t.Bytes {
		return nil, fmt.Errorf("%d bytes for %q, which is no weight of so many", t.Bytes, t.Buffer)
	}
	upload := func(data []byte) (engine.Region, error) { return dev.UploadFor(s.planned, b, data) }
	if t.Part != nil {
		if t.Part.Bytes != t.Bytes {
			return nil, fmt.Errorf("%d bytes of a file for %d", t.Part.Bytes, t.Bytes)
		}
		data, unmap, err := t.Part.view()
		if err != nil {
			return nil, err
		}
		return s.uploaded(upload, data, unmap)
	}
	data := s.gathered
	s.gathered = nil
	if int64(len(data)) != t.Bytes {
		return nil, errors.New("the bytes of a weight were not sent whole")
	}
	return s.uploaded(upload, data, func() error { return nil })
}
