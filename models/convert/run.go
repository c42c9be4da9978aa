package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/derived"
	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/models/store"
)

// Options say which adapters are added, and where the checkpoint goes.
type Options struct {
	Out      string                  // the folder
	Adapters []lora.Ref              // adapters that are added first
	Remote   *hub.Remote             // read instead of a path; else nil
	Progress func(done, total int64) // bytes of the new files, including an earlier run's
}

// Result is a complete checkpoint.
type Result struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	Layers []Loss `json:"layers"`
}

// stateName is the file that records the sources of a folder and what of it is done. It stays: the
// same import again checks a finished folder, and writes damaged or missing parts.
const stateName = "ossrun-import.json"

// state is the content of stateName.
type state struct {
	Sources  []sourceFile    `json:"sources"`
	Adapters []string        `json:"adapters,omitempty"` // with their scales
	Done     map[string]Loss `json:"done"`               // by file
}

// sourceFile identifies a source's file, to detect changes between runs.
type sourceFile struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	Changed string `json:"changed"` // modification time or ETag
}

// onPiece is called after each piece; tests stop there.
var onPiece = func() {}

// maxWorkers bounds memory: each has an expert's matrix as float32, as read, and as blocks, 66 + 66
// + 9 MB for the published widths. minRemoteWorkers keep a network busy while some compute.
const maxWorkers, minRemoteWorkers = 8, 4

// Run converts the folder or file at path, or resumes an earlier run.
func Run(ctx context.Context, path string, o Options) (r Result, err error) {
	src, workers := place(disk(path)), runtime.GOMAXPROCS(0)
	if o.Remote != nil {
		src, workers = remote{o.Remote, ctx}, max(workers, minRemoteWorkers)
	}
	from, err := open(src, o.Adapters...)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	r = Result{Path: o.Out, Bytes: from.spec.WeightBytes()}
	w := &writer{from: from, out: o.Out, workers: min(workers, maxWorkers)}
	if err := w.open(ctx, o.Adapters); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.lock.Close()) }()
	parts := partsOf(from.spec)
	var done atomic.Int64
	var remaining int64
	for i, p := range parts {
		if _, ok := w.state.Done[fileName(i, len(parts))]; ok {
			done.Add(models.TotalBytes(p))
		} else {
			remaining += models.TotalBytes(p)
		}
	}
	if free, err := store.Free(o.Out); err == nil && free < remaining {
		return r, fmt.Errorf("%s has %.1f GB free, and %.1f GB are to be written: free some, or "+
			"give another --out", o.Out, float64(free)/1e9, float64(remaining)/1e9)
	}
	stop := mapping.ReportProgress(&done, r.Bytes, o.Progress)
	for i, p := range parts {
		name := fileName(i, len(parts))
		loss, ok := w.state.Done[name]
		if !ok {
			if loss, err = w.write(ctx, name, i, p, &done); err != nil {
				stop()
				return r, err
			}
		}
		if loss.Blocks > 0 {
			r.Layers = append(r.Layers, loss)
		}
	}
	stop()
	return r, w.finish(parts)
}

// part is the content of one file: a layer, or the tensors before or after all layers.
type part []models.TensorSpec

func partsOf(s models.Spec) (parts []part) {
	current := ""
	for _, t := range s.Tensors() {
		key := ""
		if rest, ok := strings.CutPrefix(t.Name, "model.layers."); ok {
			key, _, _ = strings.Cut(rest, ".")
		}
		if len(parts) == 0 || key != current {
			parts, current = append(parts, nil), key
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], t)
	}
	return parts
}

func fileName(i, n int) string { return fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n) }

type writer struct {
	from    *openSource
	out     string
	workers int
	lock    *store.Lock
	state   state
}

func (w *writer) lockPath() string { return filepath.Join(w.out, ".lock") }

// open locks the folder, and reads the state of an earlier run on the same source.
func (w *writer) open(ctx context.Context, adapters []lora.Ref) (err error) {
	want := state{Sources: w.from.files, Done: map[string]Loss{}}
	for _, ref := range adapters {
		want.Adapters = append(want.Adapters, ref.String())
	}
	if w.lock, err = store.TryLock(w.lockPath()); err != nil {
		if errors.Is(err, store.ErrLocked) {
			return fmt.Errorf("another import writes to %s", w.out)
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.lock.Close())
		}
	}()
	text, err := os.ReadFile(filepath.Join(w.out, stateName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Join(w.out, "config.json")); err == nil {
			return fmt.Errorf("%s holds a checkpoint already: give another --out", w.out)
		}
		w.state = want
		return w.saveState()
	case err != nil:
		return err
	}
	if json.Unmarshal(text, &w.state) != nil ||
		!reflect.DeepEqual(w.state.Sources, want.Sources) ||
		!slices.Equal(w.state.Adapters, want.Adapters) {
		return fmt.Errorf("%s has an import of something else in it, or of what it was before: "+
			"delete it, or give another --out", w.out)
	}
	_, _ = derived.List(w.out, "")   // which removes a dead process's file
	for name := range w.state.Done { // missing, truncated or damaged parts are rewritten
		err := derived.CheckTensors(filepath.Join(w.out, name), os.Remove, ctx.Err)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		} else if err != nil {
			delete(w.state.Done, name)
		}
	}
	if w.state.Done == nil {
		w.state.Done = want.Done
	}
	return nil
}

func (w *writer) saveState() error {
	text, err := json.MarshalIndent(w.state, "", "  ")
	if err != nil {
		return err
	}
	return store.WriteFile(filepath.Join(w.out, stateName), text, 0o644)
}

// write writes the file of part i.
func (w *writer) write(ctx context.Context, name string, i int, p part,
	done *atomic.Int64) (loss Loss, err error) {
	path := filepath.Join(w.out, name)
	_ = os.Remove(path + ".part") // of an earlier release, if any
	start := done.Load()
	err = derived.WriteTensors(path, p, map[string]string{"format": "pt"}, ctx.Err,
		func(put derived.Put) error {
			var mu sync.Mutex
			jobs := w.jobs(p, put, func(l Loss) {
				mu.Lock()
				defer mu.Unlock()
				loss.Add(l)
			})
			return mapping.Parallel(ctx, w.workers, len(jobs), done,
				func(i int, _ *[]byte) (int64, error) {
					bytes, err := jobs[i]()
					onPiece()
					return bytes, err
				})
		})
	if err != nil {
		done.Store(start)
		return loss, fmt.Errorf("%s: %w", name, err)
	}
	w.state.Done[name] = loss
	return loss, w.saveState()
}

// pieceBytes bounds the piece of a plain tensor that one job converts.
const pieceBytes = 16 << 20

// jobs are a file's pieces of work; each returns the number of bytes that it has written.
func (w *writer) jobs(p part, put derived.Put, addLoss func(Loss)) (list []func() (int64, error)) {
	for _, t := range p {
		matrix, blocks := strings.CutSuffix(t.Name, "_blocks")
		if blocks {
			for expert := range t.Shape[0] {
				list = append(list, func() (int64, error) {
					codes, exponents, loss, err := w.expert(matrix, expert, t.Shape)
					if err != nil {
						return 0, err
					}
					addLoss(loss)
					return int64(len(codes) + len(exponents)), errors.Join(
						put(t.Name, int64(expert*len(codes)), codes),
						put(matrix+"_scales", int64(expert*len(exponents)), exponents))
				})
			}
			continue
		}
		if strings.HasSuffix(t.Name, "_scales") {
			continue // written with its blocks
		}
		width := int(t.Bytes()) / t.Shape[0]
		step := max(1, pieceBytes/width)
		for first := 0; first < t.Shape[0]; first += step {
			list = append(list, func() (int64, error) {
				data := make([]byte, min(step, t.Shape[0]-first)*width)
				if err := w.from.Rows(t.Name, first, len(data)/width, data); err != nil {
					return 0, err
				}
				return int64(len(data)), put(t.Name, int64(first*width), data)
			})
		}
	}
	return list
}

// expert encodes one expert's blocks and scales; shape is [experts, out, in/32, 16].
func (w *writer) expert(matrix string, expert int, shape []int) (codes, scales []byte, loss Loss,
	err error) {
	n := shape[1] * shape[2]
	values := make([]float32, n*models.BlockSize)
	if err := w.from.Expert(matrix, expert, values); err != nil {
		return nil, nil, loss, err
	}
	codes, scales = make([]byte, n*models.BlockBytes), make([]byte, n)
	for i := range scales {
		var one Loss
		scales[i], one = encode(values[i*models.BlockSize:][:models.BlockSize],
			codes[i*models.BlockBytes:])
		loss.Add(one)
	}
	if math.IsNaN(loss.Size) || math.IsInf(loss.Size, 0) {
		return nil, nil, loss, fmt.Errorf("%s of expert %d holds a number that is not finite: the "+
			"export is damaged", matrix, expert)
	}
	return codes, scales, loss, nil
}

// companions are the files of a checkpoint that other programs also read.
var companions = []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
	"chat_template.jinja", "README.md", "LICENSE"}

// maxCompanion bounds the bytes of one of them; tokenizer.json has 28 MB.
const maxCompanion = 256 << 20

// finish writes the remaining files of a checkpoint, config.json last.
func (w *writer) finish(parts []part) error {
	index := struct {
		Metadata map[string]int64  `json:"metadata"`
		Files    map[string]string `json:"weight_map"`
	}{map[string]int64{"total_size": w.from.spec.WeightBytes()}, map[string]string{}}
	for i, p := range parts {
		for _, t := range p {
			index.Files[t.Name] = fileName(i, len(parts))
		}
	}
	text, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	put := func(name string, text []byte) error {
		return store.WriteFile(filepath.Join(w.out, name), text, 0o644)
	}
	for _, name := range companions {
		data, err := w.from.read(name, maxCompanion)
		_, fetched := w.from.place.(remote)
		switch {
		case err == nil:
			err = put(name, data)
		case !fetched || errors.Is(err, fs.ErrNotExist):
			err = nil
		}
		if err != nil {
			return err
		}
	}
	var all Loss
	for _, loss := range w.state.Done {
		all.Add(loss)
	}
	source := append([]string{filepath.Base(w.from.String())}, w.state.Adapters...)
	record, err := json.MarshalIndent(checkpoint.Imported{Source: strings.Join(source, " + "),
		Exact:    float64(all.Exact) / float64(max(all.Blocks, 1)),
		Relative: all.Relative()}, "", "  ")
	if err != nil {
		return err
	}
	for _, f := range []struct{ name, text string }{{checkpoint.ImportRecord, string(record)},
		{"generation_config.json", string(w.from.generation)},
		{safetensors.IndexName, string(text)}, {"config.json", string(w.from.config)}} {
		if f.text != "" && err == nil {
			err = put(f.name, []byte(f.text))
		}
	}
	if err != nil {
		return err
	}
	return os.Remove(w.lockPath())
}
