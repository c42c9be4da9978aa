package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The worker's side: one request after the other. Its resources are given back with its process.

// Serve is the worker: it answers until its parent says goodbye or is gone, which is no error.
func Serve(open Opener) error {
	// stop signals go to every process of ours; the parent decides when to stop
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	socket := os.NewFile(socketDescriptor, "socket")
	info, err := socket.Stat()
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		return errors.New("this is the GPU worker: only ossrun can start it")
	}
	return serve(socket, os.NewFile(memoryDescriptor, "shared memory"), ThisBuild(), open)
}

func serve(socket io.ReadWriter, memory *os.File, id Identity, open Opener) error {
	s := &server{id: id, memory: memory, open: open, socket: socket}
	var in message
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
		if a == nil { // no answer is wanted
			continue
		}
		if s.send(a) != nil || in.kind == goodbye {
			return nil // the parent is gone, or wants it to end
		}
	}
}

type server struct {
	id     Identity
	open   Opener
	memory *os.File
	socket io.ReadWriter
	number uint32 // of the request that is answered
	out    []byte

	shared *shared
	local  Local
	notes  []string // lines for people that the next answer takes along

	ckpt       *checkpoint.Checkpoint
	eng        engine.Engine
	batch      engine.Batch // its memory is used again
	pendingErr error        // of a request without an answer
}

func (s *server) send(m *message) error {
	m.number = s.number
	s.out = m.append(s.out[:0])
	_, err := s.socket.Write(s.out)
	return err
}

// emit sends a part of the answer, and waits for the parent to say whether it wants more.
func (s *server) emit(text json.RawMessage) error {
	if err := s.send(&message{kind: part, text: text}); err != nil {
		return err
	}
	var m message
	if err := m.read(s.socket); err != nil {
		return err
	}
	if m.kind != proceed {
		return context.Canceled
	}
	return nil
}

// decodeAndRun decodes a request and runs it. Both sides know the same field names.
func decodeAndRun[T any](m *message, do func(T) (*message, error)) (*message, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(m.text))
	d.DisallowUnknownFields()
	err := d.Decode(&v)
	if err == nil && d.More() {
		err = errors.New("something follows it")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.kind, err)
	}
	return do(v)
}

func reply(v any) (*message, error) {
	text, err := json.Marshal(v)
	return &message{kind: done, text: text}, err
}

// answer runs a request; nil, nil if it has no answer.
func (s *server) answer(m *message) (*message, error) {
	s.number = m.number
	switch {
	case m.kind == hello:
		return decodeAndRun(m, s.hello)
	case m.kind == goodbye:
		return &message{kind: done}, s.end()
	case s.shared == nil:
		return nil, fmt.Errorf("%s before hello", m.kind)
	case m.kind == open:
		return decodeAndRun(m, s.openLocal)
	case s.local == nil:
		return nil, fmt.Errorf("%s before GPUs are open", m.kind)
	}
	switch m.kind {
	case memory:
		total, free := s.local.Memory()
		return reply(memoryText{total, free})
	case room:
		return decodeAndRun(m, s.room)
	case load:
		return decodeAndRun(m, s.load)
	case test:
		return &message{kind: done}, s.local.Test(context.Background(), m.text, s.emit)
	}
	if s.eng == nil {
		return nil, fmt.Errorf("%s before a model is loaded", m.kind)
	}
	switch m.kind {
	case step, measure:
		return s.step(m)
	case advance:
		return s.advance(m)
	case tap:
		return decodeAndRun(m, s.tap)
	case readCache:
		return decodeAndRun(m, s.readCache)
	case writeCache:
		return decodeAndRun(m,
			func(t bytesText) (*message, error) { return s.writeCache(t, m.shared) })
	case unload:
		return &message{kind: done}, s.unload()
	}
	return nil, fmt.Errorf("%s is no request", m.kind)
}

func (s *server) hello(h helloText) (_ *message, err error) {
	if s.shared != nil {
		return nil, errors.New("hello was said already")
	}
	if h.Identity == s.id { // else the parent says how they differ; no other field is valid
		if s.shared, err = openShared(s.memory, h.Shared); err != nil {
			return nil, err
		}
	}
	return reply(s.id)
}

func (s *server) openLocal(o engine.Settings) (*message, error) {
	if err := checkSettings(o); err != nil {
		return nil, err
	}
	if s.local != nil {
		return nil, errors.New("GPUs are open already")
	}
	local, err := s.open(o, func(line string) { s.notes = append(s.notes, line) })
	if err != nil {
		return nil, err
	}
	s.local = local
	return reply(s.text())
}

func (s *server) text() backendText {
	t := backendText{Name: s.local.Name(), Caps: s.local.Caps(), Several: s.local.Several(),
		Notes: s.notes}
	t.Kernels, t.Wrong = s.local.Kernels()
	t.Total, t.Free = s.local.Memory()
	s.notes = nil
	return t
}

func (s *server) room(a askRoom) (*message, error) {
	if err := errors.Join(checkSpec(a.Spec), checkSettings(a.Settings)); err != nil {
		return nil, err
	}
	find := s.local.Room
	if a.Here {
		find = s.local.RoomHere
	}
	r, err := find(a.Spec, a.Settings)
	if err != nil {
		return nil, err
	}
	return reply(roomText{r, s.text()})
}

// load opens the checkpoint that the parent has open, and loads it.
func (s *server) load(a loadText) (_ *message, err error) {
	if err := checkSettings(a.Settings); err != nil {
		return nil, err
	}
	if s.eng != nil {
		return nil, errors.New("a model is loaded already")
	}
	if s.ckpt, err = a.open(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	eng, err := s.local.Load(ctx, s.ckpt, a.Settings, func(done, total int64) {
		text, err := json.Marshal(progressText{done, total})
		if err == nil && ctx.Err() == nil && s.emit(text) != nil {
			stop()
		}
	})
	if err != nil {
		return nil, errors.Join(err, s.unload())
	}
	s.eng = eng
	return reply(loadedText{eng.Settings(), eng.Plan(), eng.Cache().Bytes()})
}

// open opens the checkpoint, which must be the very files that the parent has open.
func (a *loadText) open() (_ *checkpoint.Checkpoint, err error) {
	var ckpt *checkpoint.Checkpoint
	if a.Path == "" {
		ckpt, err = checkpoint.OpenDemo()
	} else {
		ckpt, err = checkpoint.Open(a.Path)
	}
	if err != nil {
		return nil, err
	}
	if err := ckpt.Adapt(a.Lora); err != nil {
		return nil, errors.Join(err, ckpt.Close())
	}
	a.Spec.Name = ckpt.Spec.Name // what a model is called does not matter here
	if ckpt.AdapterIDs != a.AdapterIDs || a.Path != "" && (!ckpt.Spec.SameShape(a.Spec) ||
		!slices.Equal(ckpt.FileStates().Files, a.Files)) {
		return nil, errors.Join(fmt.Errorf("the files in %s have changed since they were opened",
			cmp.Or(a.Path, "an adapter's folder")), ckpt.Close())
	}
	return ckpt, nil
}

func (s *server) unload() (err error) {
	if s.eng != nil {
		err = s.eng.Close()
	}
	if s.ckpt != nil {
		err = errors.Join(err, s.ckpt.Close())
	}
	s.eng, s.ckpt, s.pendingErr = nil, nil, nil
	return err
}

func (s *server) end() error {
	err := s.unload()
	if s.local != nil {
		err = errors.Join(err, s.local.Close())
		s.local = nil
	}
	return err
}
