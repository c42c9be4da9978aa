package checkpoint

// A checkpoint with LoRA adapters. The changed tensors are private copies, made on request or all
// at once. All other tensors are the checkpoint's, so that the experts' memory is shared between
// processes that map the files.
//
// What must stay true: data derived from an adapted model, in memory or on disk, has another key
// than that of its base, or of another adapter or scale.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/pack"
)

// adapted is the format of a checkpoint whose tensors adapters change.
type adapted struct {
	format // of the unadapted checkpoint

	list    []*lora.Adapter
	base    map[string]models.Tensor // of the unadapted checkpoint, all of them
	tensors map[string]models.Tensor // with the changed ones replaced
	mapped  bool                     // base is views of mapped files
	memory  *pack.Memory
	order   []string // names of the changed tensors, in the Spec's order

	mu     sync.Mutex // held while tensors are merged
	loaded map[string]bool
}

// With returns the model with adapters, each as lora.Find reads it, under a name of its own; "" is
// the model's name and theirs.
func (f Model) With(name string, adapters ...string) (Model, error) {
	full := f.Name
	for _, text := range adapters {
		ref, err := lora.Find(text)
		if err != nil {
			return f, err
		}
		f.Refs = append(slices.Clip(f.Refs), ref) // several models may share a prefix
		full += "+" + ref.Name
	}
	f.Name = cmp.Or(name, full)
	return f, nil
}

// pageBytes is the alignment of copies, so that the memory of each can be returned.
const pageBytes = 4096

// Adapt adds adapters to an open checkpoint without any. After an error, close the checkpoint.
func (c *Checkpoint) Adapt(refs []lora.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	a := &adapted{format: c.format, base: c.tensors, mapped: c.Mapped(),
		loaded: map[string]bool{}}
	states := c.states.with(refs)
	for _, ref := range refs {
		one, err := ref.Open(c.Spec)
		if err != nil {
			return err
		}
		a.list = append(a.list, one)
		c.close = append(c.close, one.Close)
		c.AdapterIDs += one.ID + "\n"
		if err := c.mark(ref.Files()); err != nil {
			return err
		}
	}
	if !slices.Equal(states.Files, c.states.with(refs).Files) { // they changed meanwhile
		states = FileStates{}
	}
	c.Refs, c.states = refs, states
	var total int64
	for _, t := range c.Spec.Tensors() {
		for _, one := range a.list {
			if one.Changes(t.Name) {
				a.order = append(a.order, t.Name)
				total += roundUp(t.Bytes())
				break
			}
		}
	}
	var err error
	if a.memory, err = pack.Reserve(total); err != nil {
		return fmt.Errorf("%d bytes for the weights that adapters change: %w", total, err)
	}
	mapping.PreferHugePages(a.memory.Bytes)
	c.close = append(c.close, a.memory.Free)
	a.tensors = maps.Clone(a.base)
	rest := a.memory.Bytes
	for _, name := range a.order {
		t := a.base[name]
		size := int64(len(t.Data))
		t.Data, rest = rest[:size:size], rest[roundUp(size):]
		a.tensors[name] = t
	}
	c.tensors, c.format = a.tensors, a
	return nil
}

func roundUp(n int64) int64 { return (n + pageBytes - 1) / pageBytes * pageBytes }

// with appends the states of adapters' files.
func (s FileStates) with(refs []lora.Ref) FileStates {
	for _, ref := range refs {
		states := statesOf(ref.Files()).Files
		if len(s.Files) == 0 || len(states) == 0 {
			return FileStates{}
		}
		for _, state := range states {
			state.Scale = fmt.Sprint(ref.Scale)
			s.Files = append(s.Files, state)
		}
	}
	return s
}

func (a *adapted) changes(name string) bool { return slices.Contains(a.order, name) }

func (a *adapted) Fetch(name string) error {
	if a.changes(name) {
		return a.merge(context.Background(), []string{name}, nil)
	}
	return a.format.Fetch(name)
}

// Adapter is a model that shares all except a few tensors with the checkpoint it is added to.
type Adapter struct {
	Name    string   // clients' name for it
	Key     string   // of its weights; the same key means the same KV pages
	Changed []string // names of the tensors that differ from the checkpoint's

	weights *Checkpoint
}

// AddAdapter adds a model of the same files with more adapters merged. Close closes it too.
func (c *Checkpoint) AddAdapter(name string, weights *Checkpoint) {
	a := weights.format.(*adapted)
	changed := slices.DeleteFunc(slices.Clone(a.order), func(tensor string) bool {
		changes := func(one *lora.Adapter) bool { return one.Changes(tensor) }
		return !slices.ContainsFunc(a.list[len(c.Refs):], changes)
	})
	c.Adapters = append(c.Adapters, Adapter{name, weights.AdapterIDs, changed, weights})
}

// ForAdapter returns the weights of an adapter, counted from 1; 0: c.
func (c *Checkpoint) ForAdapter(number int) *Checkpoint {
	if number == 0 {
		return c
	}
	return c.Adapters[number-1].weights
}

// Merge computes the changed tensors that are not in memory yet, except those that without skips;
// without and progress may be nil. The checkpoint's own copies leave memory. If ctx ends first, the
// error is its cause.
func (c *Checkpoint) Merge(ctx context.Context, without func(tensor string) bool,
	progress func(done, total int64)) error {
	a, ok := c.format.(*adapted)
	if !ok {
		return nil
	}
	names := slices.Clone(a.order)
	if without != nil {
		names = slices.DeleteFunc(names, without)
	}
	return a.merge(ctx, names, progress)
}

// mergeValues is approximately the number of values that one goroutine computes at once.
const mergeValues = 1 << 18

func (a *adapted) merge(ctx context.Context, names []string,
	progress func(done, total int64)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var total int64
	var done atomic.Int64
	for _, name := range names {
		if !a.loaded[name] {
			total += int64(len(a.tensors[name].Data))
		}
	}
	if total == 0 {
		return nil
	}
	stop := mapping.ReportProgress(&done, total, progress)
	defer stop()
	for _, name := range names {
		if a.loaded[name] {
			continue
		}
		if err := a.format.Fetch(name); err != nil {
			return err
		}
		base, to := a.base[name], a.tensors[name].Data
		sum, rows := lora.Add(base, a.list), base.Shape[0]
		width := len(to) / rows
		step := max(1, 2*mergeValues/width)
		err := mapping.Parallel(ctx, runtime.GOMAXPROCS(0), (rows+step-1)/step, &done,
			func(i int, _ *[]byte) (int64, error) {
				first := i * step
				count := min(step, rows-first)
				part := to[first*width:][:count*width]
				return int64(len(part)), sum.Rows(first, count, part)
			})
		if err != nil {
			return err
		}
		a.loaded[name] = true
		if !a.format.Release(name) && a.mapped {
			mapping.PageOut(base.Data)
		}
	}
	return nil
}

func (a *adapted) Release(name string) bool {
	if !a.changes(name) {
		return a.format.Release(name)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if mapping.Release(a.tensors[name].Data) {
		a.loaded[name] = false
	}
	return true
}
