package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/ossrun/ossrun/runtime/engine"
)

// The worker's side: one request after the other, in one goroutine. Whatever it holds is given back with its process, so an end needs no order.

// An Opener opens the device of a worker. said is for people.
type Opener func(w Wanted) (dev engine.Device, said []string, err error)

// Serve is the worker: it answers on the descriptors that it was started with until its parent says goodbye or is gone, which is no error.
func Serve(open Opener) error {
	// The terminal and the service manager tell every process of ours to stop; the parent decides when that is.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	socket := os.NewFile(socketDescriptor, "socket")
	info, err := socket.Stat()
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		return errors.New("this is the GPU worker: ossrun starts it, nobody else can use it")
	}
	return serve(socket, os.NewFile(memoryDescriptor, "shared memory"), Here(), open)
}

// serve answers until the socket ends.
func serve(socket io.ReadWriter, memory *os.File, id Identity, open Opener) error {
	s := &server{id: id, memory: memory, open: open, regions: map[uint32]*heldRegion{}, steps: map[uint32]*heldStep{}}
	var in message
	var out []byte
	for {
		switch err := in.read(socket); {
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
			return nil
		case err != nil:
			return fmt.Errorf("the socket: %w", err)
		}
		a, err := s.answer(&in)
		if err != nil {
			a = &message{kind: failed, text: encodeFault(err)}
		}
		if a == nil { // nobody waits for this one
			continue
		}
		a.number = in.number
		out = a.append(out[:0])
		if _, err := socket.Write(out); err != nil {
			return nil // the parent is gone
		}
		if in.kind == goodbye {
			return nil
		}
	}
}

// server is the state of a worker.
type server struct {
	id     Identity
	open   Opener
	memory *os.File

	shared *shared
	dev    engine.Device

	last    uint32 // number of the last region or step
	regions map[uint32]*heldRegion
	steps   map[uint32]*heldStep
	batch   engine.Batch // its memory is used again
	unsaid  error        // of a request that nobody waits for

	planned  *engine.Program // the largest of an engine, of several devices
	gathered []byte          // of a weight that lies in no file
}

// heldRegion is memory of the device, and the mapped file that it is a view of, if it is.
type heldRegion struct {
	engine.Region
	unmap func() error
}

type heldStep struct {
	engine.Step
	program *engine.Program
	taps    []uint32 // regions that its results lie in; they are not its own
	queued  int      // logit rows of the batch that waits for its choice; 0 when none does
	fault   error    // why it could not be queued
}

// answer does what a request asks for; nil, nil when it has no answer.
func (s *server) answer(m *message) (*message, error) {
	if s.shared == nil && m.kind != hello && m.kind != goodbye {
		return nil, fmt.Errorf("%s before hello", m.kind)
	}
	if s.dev == nil && m.kind != hello && m.kind != open && m.kind != goodbye {
		return nil, fmt.Errorf("%s before a device is open", m.kind)
	}
	switch m.kind {
	case hello:
		return s.hello(m)
	case open:
		return s.openDevice(m)
	case memory:
		total, free := s.dev.Memory()
		return tell(memoryText{total, free})
	case bandwidth:
		return s.bandwidth()
	case prove:
		return s.prove()
	case rates:
		return s.rates()
	case alloc:
		return s.alloc(m)
	case uploadOne:
		return s.upload(m)
	case readPart, writePart:
		return s.part(m)
	case free:
		return s.free(m)
	case compile:
		return s.compile(m)
	case drop:
		return s.drop(m)
	case profiling:
		return s.profiling(m)
	case profile:
		return s.profile(m)
	case forward:
		return s.forward(m)
	case advance:
		return s.advance(m)
	case plan, allocFor, gather, uploadFor, mostPages:
		return s.place(m)
	case goodbye:
		return s.goodbye()
	}
	return nil, fmt.Errorf("%s is no request", m.kind)
}

func (s *server) hello(m *message) (*message, error) {
	h, err := ask[helloText](m)
	if err != nil {
		return nil, err
	}
	if s.shared != nil {
		return nil, errors.New("hello was said already")
	}
	if h.Identity != s.id { // the parent says how they differ, and nothing else is true of it then
		return tell(s.id)
	}
	if s.shared, err = openShared(s.memory, h.Shared); err != nil {
		return nil, err
	}
	return tell(s.id)
}

func (s *server) openDevice(m *message) (*message, error) {
	o, err := ask[openText](m)
	if err != nil {
		return nil, err
	}
	if s.dev != nil {
		return nil, errors.New("a device is open already")
	}
	var said []string
	if s.dev, said, err = s.open(o.Wanted); err != nil {
		s.dev = nil
		return nil, err
	}
	t := deviceText{Name: s.dev.Name(), Caps: s.dev.Caps(), Said: said}
	_, t.Places = s.dev.(engine.Placer)
	if k, ok := s.dev.(interface{ Trusted() (string, []string) }); ok {
		t.Kernels, t.Wrong = k.Trusted()
	}
	t.Total, t.Free = s.dev.Memory()
	return tell(t)
}

func (s *server) bandwidth() (*message, error) {
	b, ok := s.dev.(interface{ Bandwidth() (float64, error) })
	if !ok {
		return nil, fmt.Errorf("%s cannot measure its memory", s.dev.Name())
	}
	rate, err := b.Bandwidth()
	if err != nil {
		return nil, err
	}
	return tell(bandText{rate})
}

// prove has the device hold its kernels to the plain ones; how it tells that is nothing to this package.
func (s *server) prove() (*message, error) {
	p, ok := s.dev.(interface {
		ProofsText(context.Context) ([]byte, error)
	})
	if !ok {
		return nil, fmt.Errorf("%s cannot prove its kernels", s.dev.Name())
	}
	text, err := p.ProofsText(context.Background())
	if err != nil {
		return nil, err
	}
	return tell(proofsText{text})
}

// rates has the device measure what it multiplies; as with proofs, the text is nothing to this package.
func (s *server) rates() (*message, error) {
	m, ok := s.dev.(interface{ RatesText() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%s cannot measure its matrix units", s.dev.Name())
	}
	text, err := m.RatesText()
	if err != nil {
		return nil, err
	}
	return tell(ratesText{text})
}

// goodbye gives the device back, with all that is on it.
func (s *server) goodbye() (*message, error) {
	var errs []error
	for _, x := range s.steps {
		errs = append(errs, x.Close())
	}
	for _, r := range s.regions {
		errs = append(errs, r.release())
	}
	if s.dev != nil {
		errs = append(errs, s.dev.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &message{kind: done}, nil
}
