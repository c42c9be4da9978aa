//go:build linux

package worker

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
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
	return serve(socket, os.NewFile(memoryDescriptor, "memory"), ThisBuild(), opener(args[0]))
}

type crooked struct {
	io.ReadWriter
	how  string
	left int
}

// wrongs are the ways an answer goes wrong.
var wrongs = []string{"exit", "torn", "number", "kind", "length", "shared", "text", "twice",
	"count"}

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
		word(0, uint32(step))
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

// TestCrookedWorker: at each phase of an engine's life, in each way: an error, never a hang, and
// nothing is left. The last answer is that to goodbye; a worker that is crooked there is gone all
// the same.
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
	if err := run("exit", 1<<30); err != nil || count < 7 {
		t.Fatalf("%d messages: %v", count, err)
	}
	tensors := len(ckpt.Spec.Tensors())
	all := count + tensors // answers: each tensor that was loaded is a part of one
	// hello, open, tensors on their way, loaded, the two steps, unload
	for i, nth := range []int{1, 2, 3, all / 2, all - 4, all - 3, all - 2, all - 1} {
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
			if err == nil && nth < all-1 { // the worker may be gone when its model is closed
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
	hosttest.Check(t, err)
	defer file.Close()
	defer s.close()
	again := hosttest.Must(openShared(file, slotsBytes+4096))(t)
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
	hosttest.Check(t, err)
	defer loose.Close()
	hosttest.Check(t, loose.Truncate(slotsBytes+4096))
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

// TestFewLogits: a step whose logits have no room in the shared memory says so, and the worker goes
// on.
func TestFewLogits(t *testing.T) {
	ckpt := tiny(t)
	eng := loadedOn(t, opened(t, "cpu", Options{logits: 4096}), ckpt,
		engine.Settings{Pages: 4, MaxNumBatchedTokens: 16})
	b := rows(0, 15, 16)
	for len(b.LogitRows)*ckpt.Spec.Vocab <= 1024 {
		b.LogitRows = append(b.LogitRows, 0)
	}
	logits := make([]float32, len(b.LogitRows)*ckpt.Spec.Vocab)
	if err := eng.Step(t.Context(), b, logits); err == nil {
		t.Error("no room is enough")
	}
	hosttest.Check(t, eng.Step(t.Context(), rows(0, 15), logits))
}

// TestCrookedParent: requests that no honest parent sends are refused, and the worker goes on.
func TestCrookedParent(t *testing.T) {
	s := crookedServer(t)
	refused := func(list ...message) {
		t.Helper()
		for _, m := range list {
			if a, err := s.answer(&m); err == nil {
				t.Errorf("%s %s: %+v", m.kind, m.text, a)
			}
		}
	}
	refused(message{kind: hello, text: []byte(`{}`)}, message{kind: open, text: []byte(`{}`)},
		message{kind: room, text: []byte(`{}`)},
		message{kind: room, text: []byte(`[`)}, message{kind: room, text: []byte(`{"What":1}`)},
		message{kind: load, text: []byte(`{}{}`)},
		message{kind: load, text: []byte(`{"Path":"/nowhere"}`)}, message{kind: load,
			text: []byte(`{"Settings":{"Pages":-1}}`)},
		message{kind: step}, message{kind: advance}, message{kind: tap}, message{kind: readCache},
		message{kind: unload},
		message{kind: test, text: []byte(`{}`)}, message{kind: done}, message{kind: failed},
		message{kind: proceed}, message{kind: part})
	ckpt, adapter := tiny(t), filepath.Join(t.TempDir(), "style")
	hosttest.Check(t, modeltest.NewAdapter(ckpt.Spec, "q_proj.weight").Write(adapter))
	hosttest.Check(t, ckpt.Adapt([]lora.Ref{{Name: "style", Path: adapter, Scale: 1}}))
	good := loadText{Path: ckpt.Path, Lora: ckpt.Refs, AdapterIDs: ckpt.AdapterIDs,
		Spec: ckpt.Spec, Files: ckpt.FileStates().Files, Settings: small}
	for what, change := range map[string]func(*loadText){
		"another shape": func(l *loadText) { l.Spec.Layers++ },
		"no files":      func(l *loadText) { l.Files = nil },
		"no adapter":    func(l *loadText) { l.Lora = nil },
		"half of it":    func(l *loadText) { l.Lora = slices.Clone(l.Lora); l.Lora[0].Scale = 0.5 },
		"another one":   func(l *loadText) { l.AdapterIDs = "another\n" },
		"another size":  func(l *loadText) { l.Files = slices.Clone(l.Files); l.Files[0].Size++ },
		"another inode": func(l *loadText) { l.Files = slices.Clone(l.Files); l.Files[0].Inode++ },
		"another time":  func(l *loadText) { l.Files = slices.Clone(l.Files); l.Files[0].Modified++ },
	} {
		lie := good
		change(&lie)
		if _, err := s.answer(jsonMessage(t, load, lie)); err == nil ||
			!strings.Contains(err.Error(), "have changed since they were opened") {
			t.Errorf("%s: %v", what, err)
		}
	}
	hosttest.Must(s.answer(jsonMessage(t, load, good)))(t)
	refused(*jsonMessage(t, load, good), message{kind: step},
		message{kind: step, shared: slotBytes}, message{kind: measure},
		message{kind: tap, text: []byte(`{"Name":"final","Rows":1}`)}, message{kind: tap,
			text: []byte(`{"Rows":-1}`)})
	for _, text := range []string{`{"Offset":-1,"Bytes":1}`, `{"Bytes":1000000000}`,
		`{"Offset":9223372036854775807,"Bytes":10}`, `{"Bytes":-5}`} {
		for _, k := range []kind{readCache, writeCache} {
			refused(message{kind: k, text: []byte(text)})
		}
	}
	refused(message{kind: writeCache, text: []byte(`{"Bytes":8}`), shared: 4})
	hosttest.Must(s.answer(&message{kind: goodbye}))(t)
}

func jsonMessage(t testing.TB, k kind, v any) *message {
	t.Helper()
	text := hosttest.Must(json.Marshal(v))(t)
	return &message{kind: k, text: text}
}

// agreeable is a parent that wants more of everything.
type agreeable struct{ in bytes.Buffer }

func (a *agreeable) Read(p []byte) (int, error) { return a.in.Read(p) }

func (a *agreeable) Write(p []byte) (int, error) {
	a.in.Write((&message{kind: proceed}).append(nil))
	return len(p), nil
}

// crookedServer is a worker's state with a CPU open, in this process.
func crookedServer(t testing.TB) *server {
	t.Helper()
	sh, file, err := newShared(1 << 20)
	hosttest.Check(t, err)
	t.Cleanup(func() {
		if err := errors.Join(sh.close(), file.Close()); err != nil {
			t.Error(err)
		}
	})
	local := hosttest.Must(opener("cpu")(engine.Settings{}, nil))(t)
	return &server{id: ThisBuild(), memory: file, shared: sh, local: local, socket: &agreeable{},
		open: func(engine.Settings, func(string)) (Local, error) { return nil, unix.ENODEV }}
}

// FuzzServer: whatever is asked of a worker that has a model, it answers.
func FuzzServer(f *testing.F) {
	s := crookedServer(f)
	ckpt := tiny(f)
	good := jsonMessage(f, load, loadText{Path: ckpt.Path, Spec: ckpt.Spec,
		Files: ckpt.FileStates().Files, Settings: small})
	f.Add(uint32(room), uint32(0), jsonMessage(f, room, askRoom{ckpt.Spec, small, true}).text)
	f.Add(uint32(advance), uint32(64), []byte{1, 0, 0, 0})
	f.Add(uint32(writeCache), uint32(8), []byte(`{"Bytes":8}`))
	f.Add(uint32(tap), uint32(0), []byte(`{"Name":"final","Rows":1}`))
	f.Add(uint32(test), uint32(0), []byte(`3`))
	f.Add(uint32(unload), uint32(0), []byte(`{}`))
	f.Fuzz(func(t *testing.T, k, shared uint32, text []byte) {
		m := message{kind: kind(k % uint32(kinds)), shared: shared % (slotBytes + 1), text: text}
		if m.kind == 0 || m.kind == goodbye || m.kind == load || m.kind == test && len(text) > 1 {
			return // a path of the fuzzer's belongs to no file, and it counts far
		}
		if s.eng == nil {
			hosttest.Must(s.answer(good))(t)
		}
		copy(s.shared.slot(0), text)
		if a, err := s.answer(&m); err == nil && a == nil && m.kind != advance {
			t.Fatalf("%s %q: no answer", m.kind, m.text)
		}
	})
}
