//go:build linux

package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
)

// A worker that goes wrong at its nth answer, and a parent that does at its nth request.

// work is the worker of the command line: a device, and how it goes wrong at which answer.
func work(args []string) error {
	if len(args) == 1 {
		return Serve(opener(args[0]))
	}
	nth, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	socket := &crooked{ReadWriter: os.NewFile(socketDescriptor, "socket"), how: args[1], left: nth}
	return serve(socket, os.NewFile(memoryDescriptor, "memory"), Here(), opener(args[0]))
}

type crooked struct {
	io.ReadWriter
	how  string
	left int
}

// wrongs are the ways an answer goes wrong.
var wrongs = []string{"exit", "torn", "number", "kind", "length", "shared", "text", "twice", "count"}

func (c *crooked) Write(answer []byte) (int, error) {
	if c.left--; c.left != 0 {
		return c.ReadWriter.Write(answer)
	}
	word := func(i int, v uint32) { binary.LittleEndian.PutUint32(answer[4*i:], v) }
	switch c.how {
	case "exit":
		os.Exit(9)
	case "torn":
		c.ReadWriter.Write(answer[:len(answer)/2])
		os.Exit(9)
	case "number":
		word(1, binary.LittleEndian.Uint32(answer[4:])+1)
	case "kind":
		word(0, uint32(forward))
	case "length":
		word(2, mostText+1)
	case "shared":
		word(3, answerBytes+1)
	case "text":
		for i := headerBytes; i < len(answer); i++ {
			answer[i] = '?'
		}
		if len(answer) == headerBytes { // there is no text that could be wrong
			os.Exit(9)
		}
	case "twice":
		c.ReadWriter.Write(answer)
	case "count": // too long by what follows, which never comes
		word(2, binary.LittleEndian.Uint32(answer[8:])+1)
		c.ReadWriter.Write(answer)
		os.Exit(9)
	}
	return c.ReadWriter.Write(answer)
}

// TestCrookedWorker: at each phase of an engine's life, in each way: an error, never a hang, and nothing is left. The last answer is that to
// goodbye; a worker that is crooked there is gone all the same.
func TestCrookedWorker(t *testing.T) {
	ckpt := tiny(t)
	count := 0
	run := func(how string, nth int) error {
		dev, err := Start(Options{Program: append(program(t, "cpu"), how, strconv.Itoa(nth))})
		if err != nil {
			return err
		}
		_, err = life(t.Context(), dev, ckpt)
		count = int(dev.c.last) + 1
		_ = dev.Close()
		return err
	}
	if err := run("exit", 1<<30); err != nil || count < 20 {
		t.Fatalf("%d messages: %v", count, err)
	}
	all := count
	// hello, open, the cache's region, a weight, a program, the two steps, a region given back
	for i, nth := range []int{1, 2, 3, 6, all / 2, all - 1 - (all-1)/2, all - 8} {
		for j, how := range wrongs {
			if testing.Short() && (i+j)%3 != 0 {
				continue
			}
			err := run(how, nth)
			if how == "twice" { // shows when the next answer comes
				continue
			}
			var lost *Lost
			if err != nil && !errors.As(err, &lost) {
				t.Errorf("%s at answer %d of %d: %v", how, nth, all, err)
			}
			if err == nil && nth < all-8 {
				t.Errorf("%s at answer %d of %d: nothing was noticed", how, nth, all)
			}
		}
	}
	for _, how := range wrongs {
		if err := run(how, all); err != nil {
			t.Errorf("%s at goodbye: %v", how, err)
		}
	}
}

// TestSharedMemory: a worker maps what its parent made and nothing else.
func TestSharedMemory(t *testing.T) {
	s, file, err := newShared(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	defer s.close()
	again, err := openShared(file, slotsBytes+4096)
	if err != nil {
		t.Fatal(err)
	}
	s.slot(7)[5] = 'x'
	if again.slot(7)[5] != 'x' || again.slot(6)[5] == 'x' {
		t.Error("not the same memory")
	}
	if err := again.close(); err != nil {
		t.Error(err)
	}
	if _, err := s.logits(1025); err == nil {
		t.Error("more logits than there is room for")
	}
	if err := file.Truncate(10); err == nil {
		t.Error("shared memory shrinks under its users")
	}
	loose, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	if err != nil {
		t.Fatal(err)
	}
	defer loose.Close()
	if err := loose.Truncate(slotsBytes + 4096); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"too short":      second(openShared(file, 4096)),
		"too long":       second(openShared(file, slotsBytes+logitsBytes+1)),
		"another length": second(openShared(file, slotsBytes+8192)),
		"no seal":        second(openShared(loose, slotsBytes+4096)),
	} {
		if err == nil {
			t.Errorf("%s: mapped", what)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestFewLogits: a step whose logits have no room in the shared memory says so, and the worker goes on.
func TestFewLogits(t *testing.T) {
	ckpt := tiny(t)
	dev := opened(t, "cpu", Options{logits: 4096})
	eng, err := engine.New(dev, ckpt, engine.Settings{Pages: 4, MaxNumBatchedTokens: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	b := rows(0, 15, 16)
	for len(b.LogitRows)*ckpt.Spec.Vocab <= 1024 {
		b.LogitRows = append(b.LogitRows, 0)
	}
	logits := make([]float32, len(b.LogitRows)*ckpt.Spec.Vocab)
	if err := eng.Step(t.Context(), b, logits); err == nil {
		t.Error("no room is enough")
	}
	if err := eng.Step(t.Context(), rows(0, 15), logits); err != nil {
		t.Error(err)
	}
}

// TestCrookedParent: requests that no honest parent sends are refused, and the worker goes on.
func TestCrookedParent(t *testing.T) {
	s := crookedServer(t, cpuOf(1<<20))
	for _, m := range []message{
		{kind: hello, text: []byte(`{}`)}, {kind: open, text: []byte(`{}`)}, {kind: alloc, text: []byte(`{"Bytes":-1}`)}, {kind: alloc, text: []byte(`{"Bytes":1e30}`)},
		{kind: alloc, text: []byte("[")}, {kind: uploadOne, text: []byte(`{"Path":"/dev/zero","Bytes":10,"Size":100}`)}, {kind: readPart, text: []byte(`{"Region":9,"Bytes":1}`)},
		{kind: free, text: []byte(`{"Region":9}`)}, {kind: compile, text: []byte(`{}`)}, {kind: drop, text: []byte(`{"Step":9}`)}, {kind: profile, text: []byte(`{"Step":9}`)},
		{kind: forward}, {kind: forward, shared: slotBytes}, {kind: done}, {kind: failed},
	} {
		if a, err := s.answer(&m); err == nil {
			t.Errorf("%s %s: %+v", m.kind, m.text, a)
		}
	}
	made, err := s.answer(&message{kind: alloc, text: []byte(`{"Bytes":64}`)})
	if err != nil {
		t.Fatal(err)
	}
	var r regionText
	if r, err = ask[regionText](made); err != nil || r.Bytes != 64 {
		t.Fatalf("%+v %v", r, err)
	}
	for _, part := range []string{`"Offset":65`, `"Offset":-1,"Bytes":1`, `"Bytes":65`, `"Offset":9223372036854775807,"Bytes":10`, `"Bytes":-5`} {
		text := fmt.Appendf(nil, `{"Region":%d,%s}`, r.Region, part)
		for _, k := range []kind{readPart, writePart} {
			if _, err := s.answer(&message{kind: k, text: text}); err == nil {
				t.Errorf("%s %s: done", k, part)
			}
		}
	}
	if _, err := s.goodbye(); err != nil {
		t.Error(err)
	}
}

// crookedServer is a worker's state with a device open, in this process.
func crookedServer(t testing.TB, dev engine.Device) *server {
	t.Helper()
	sh, file, err := newShared(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(sh.close(), file.Close()); err != nil {
			t.Error(err)
		}
	})
	return &server{id: Here(), memory: file, shared: sh, dev: dev, regions: map[uint32]*heldRegion{}, steps: map[uint32]*heldStep{},
		open: func(Wanted) (engine.Device, []string, error) { return nil, nil, unix.ENODEV }}
}

// limited is a CPU with little memory.
type limited struct {
	engine.Device
	most int64
}

func cpuOf(most int64) engine.Device {
	d, err := cpu.New(1)
	if err != nil {
		panic(err)
	}
	return limited{d, most}
}

func (l limited) Alloc(bytes int64) (engine.Region, error) {
	if bytes > l.most {
		return nil, errors.New("so much is not there")
	}
	return l.Device.Alloc(bytes)
}

// FuzzServer: whatever is asked of a worker, it answers.
func FuzzServer(f *testing.F) {
	_, text := encoded(f, small)
	f.Add(uint32(alloc), uint32(0), []byte(`{"Bytes":64}`))
	f.Add(uint32(compile), uint32(0), text)
	f.Add(uint32(advance), uint32(64), []byte{1, 0, 0, 0})
	f.Add(uint32(writePart), uint32(8), []byte(`{"Region":1,"Bytes":8}`))
	s := crookedServer(f, cpuOf(1<<16))
	f.Fuzz(func(t *testing.T, k, shared uint32, text []byte) {
		m := message{kind: kind(k % uint32(kinds)), shared: shared % (slotBytes + 1), text: text}
		if m.kind == 0 || m.kind == goodbye {
			return
		}
		answers(t, s, &m)
	})
}

// answers gives a server a message, whose text is in the shared memory too: it must be answered or refused. Memory that such messages ask for is given
// back when there is much of it.
func answers(t *testing.T, s *server, m *message) {
	t.Helper()
	copy(s.shared.slot(0), m.text)
	if a, err := s.answer(m); err == nil && a == nil && m.kind != advance {
		t.Fatalf("%s %q: no answer", m.kind, m.text)
	}
	if len(s.regions) > 100 {
		for n, r := range s.regions {
			if err := r.release(); err != nil {
				t.Fatal(err)
			}
			delete(s.regions, n)
		}
	}
}
