package worker

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/runtime/engine"
)

// What a worker holds for its parent, by numbers: regions and compiled steps.

// ask reads what a request says.
func ask[T any](m *message) (v T, err error) {
	if err := json.Unmarshal(m.text, &v); err != nil {
		return v, fmt.Errorf("%s: %w", m.kind, err)
	}
	return v, nil
}

// tell is an answer that says something.
func tell(v any) (*message, error) {
	text, err := json.Marshal(v)
	return &message{kind: done, text: text}, err
}

// mostHeld keeps a parent that has lost count from taking all memory for the counting.
const mostHeld = 1 << 20

func (s *server) number() (uint32, error) {
	if len(s.regions)+len(s.steps) >= mostHeld {
		return 0, fmt.Errorf("%d regions and steps are held", mostHeld)
	}
	s.last++
	return s.last, nil
}

func (r *heldRegion) release() error {
	err := r.Free()
	if r.unmap != nil {
		err = errors.Join(err, r.unmap())
	}
	return err
}

// hold numbers a region.
func (s *server) hold(r engine.Region, unmap func() error) (*message, error) {
	held := &heldRegion{r, unmap}
	n, err := s.number()
	if err != nil {
		return nil, errors.Join(err, held.release())
	}
	s.regions[n] = held
	return tell(regionText{n, r.Bytes()})
}

func (s *server) region(number uint32) (engine.Region, error) {
	r := s.regions[number]
	if r == nil {
		return nil, fmt.Errorf("there is no region %d", number)
	}
	return r.Region, nil
}

func (s *server) alloc(m *message) (*message, error) {
	t, err := ask[allocText](m)
	if err != nil {
		return nil, err
	}
	r, err := s.dev.Alloc(t.Bytes)
	if err != nil {
		return nil, err
	}
	return s.hold(r, nil)
}

func (s *server) upload(m *message) (*message, error) {
	p, err := ask[filePart](m)
	if err != nil {
		return nil, err
	}
	data, unmap, err := p.view()
	if err != nil {
		return nil, err
	}
	return s.uploaded(s.dev.Upload, data, unmap)
}

// uploaded holds what becomes of data that is mapped for as long as that.
func (s *server) uploaded(upload func([]byte) (engine.Region, error), data []byte, unmap func() error) (*message, error) {
	r, err := upload(data)
	if err != nil {
		return nil, errors.Join(err, unmap())
	}
	return s.hold(r, unmap)
}

func (s *server) part(m *message) (*message, error) {
	t, err := ask[partText](m)
	if err != nil {
		return nil, err
	}
	r, err := s.region(t.Region)
	if err != nil {
		return nil, err
	}
	if t.Offset < 0 || t.Bytes < 0 || t.Bytes > pieceBytes || t.Offset > r.Bytes()-t.Bytes {
		return nil, fmt.Errorf("%d bytes at %d of a region of %d", t.Bytes, t.Offset, r.Bytes())
	}
	if m.kind == readPart {
		return &message{kind: done, shared: uint32(t.Bytes)}, r.Read(t.Offset, s.shared.answer(m.number)[:t.Bytes])
	}
	if int64(m.shared) != t.Bytes {
		return nil, fmt.Errorf("%d bytes are sent to be written, %d are said", m.shared, t.Bytes)
	}
	return &message{kind: done}, r.Write(t.Offset, s.shared.slot(m.number)[:t.Bytes])
}

func (s *server) free(m *message) (*message, error) {
	t, err := ask[partText](m)
	if err != nil {
		return nil, err
	}
	r := s.regions[t.Region]
	if r == nil {
		return nil, fmt.Errorf("there is no region %d", t.Region)
	}
	delete(s.regions, t.Region)
	return &message{kind: done}, r.release()
}

func (s *server) compile(m *message) (*message, error) {
	p, err := decodeProgram(m.text, s.region)
	if err != nil {
		return nil, err
	}
	before := map[*engine.Buffer]engine.Region{}
	for _, b := range p.Buffers {
		before[b] = b.Region
	}
	made, err := s.dev.Compile(p)
	if err != nil {
		return nil, err
	}
	n, err := s.number()
	if err != nil {
		return nil, errors.Join(err, made.Close())
	}
	held := &heldStep{Step: made, program: p}
	s.steps[n] = held
	t := stepText{Step: n}
	_, t.Samples = made.(engine.SamplingStep)
	if t.Taps, err = s.taps(held, before); err != nil {
		return nil, err
	}
	return tell(t)
}

// taps numbers the regions that Compile has given to the results of Taps: those of several devices lie where nobody could say before.
func (s *server) taps(held *heldStep, before map[*engine.Buffer]engine.Region) (list []tapText, err error) {
	for i, b := range held.program.Buffers {
		if b.Region == before[b] {
			continue
		}
		n, err := s.number()
		if err != nil {
			return nil, err
		}
		s.regions[n] = &heldRegion{borrowed{b.Region}, nil}
		held.taps = append(held.taps, n)
		list = append(list, tapText{i, n, b.Offset, b.Region.Bytes()})
	}
	return list, nil
}

// borrowed is a region that somebody else frees.
type borrowed struct{ engine.Region }

func (borrowed) Free() error { return nil }

// step finds a step.
func (s *server) step(number uint32) (*heldStep, error) {
	x := s.steps[number]
	if x == nil {
		return nil, fmt.Errorf("there is no step %d", number)
	}
	return x, nil
}

func (s *server) drop(m *message) (*message, error) {
	t, err := ask[stepText](m)
	if err != nil {
		return nil, err
	}
	x, err := s.step(t.Step)
	if err != nil {
		return nil, err
	}
	delete(s.steps, t.Step)
	for _, n := range x.taps {
		delete(s.regions, n)
	}
	return &message{kind: done}, x.Close()
}

func (s *server) profiling(m *message) (*message, error) {
	t, err := ask[profilingText](m)
	if err != nil {
		return nil, err
	}
	x, err := s.step(t.Step)
	if err != nil {
		return nil, err
	}
	x.Profiling(t.On)
	return &message{kind: done}, nil
}

func (s *server) profile(m *message) (*message, error) {
	t, err := ask[stepText](m)
	if err != nil {
		return nil, err
	}
	x, err := s.step(t.Step)
	if err != nil {
		return nil, err
	}
	return tell(profileText{x.Profile()})
}
