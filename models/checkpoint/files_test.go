package checkpoint_test

// The files that a start reads ahead when a copy replaces some weights, in each layout, and
// detection of changed files.

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// piece is the place of a tensor.
type piece struct {
	file, name string
	begin, end int64
}

// layouts writes the smallest checkpoint in every layout, and returns the places of its tensors.
func layouts(t *testing.T) map[string]struct {
	path   string
	pieces []piece
	dense  []string // parts of the names of the dense weights
} {
	t.Helper()
	root := t.TempDir()
	released, original := filepath.Join(root, "released"), filepath.Join(root, "original")
	hosttest.Check(t, modeltest.New(modeltest.Tiny(), 3).Write(released))
	ckpt := hosttest.Must(checkpoint.Open(released))(t)
	t.Cleanup(func() { ckpt.Close() })
	hosttest.Check(t, modeltest.WriteOriginal(ckpt, original))
	headers := func(folder string) (list []piece) {
		files, err := filepath.Glob(filepath.Join(folder, "*.safetensors"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s holds %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			h := hosttest.Must(safetensors.Inspect(file))(t)
			for _, x := range h.Tensors {
				list = append(list, piece{file, x.Name, x.Begin, x.End})
			}
		}
		return list
	}
	list := map[string]struct {
		path   string
		pieces []piece
		dense  []string
	}{
		"released": {released, headers(released), []string{"lm_head.weight", ".q_proj.weight",
			".k_proj.weight", ".v_proj.weight", ".o_proj.weight"}},
		"original": {original, headers(original), []string{"unembedding.weight", ".attn.qkv.weight",
			".attn.out.weight"}},
	}
	for name, style := range map[string]modeltest.GGUFStyle{"llama.cpp": modeltest.LlamaQ8,
		"ollama": modeltest.Ollama} {
		path := hosttest.Must(modeltest.WriteGGUF(ckpt, filepath.Join(root, name), "it", style,
			2))(t)
		set := hosttest.Must(gguf.OpenSet(path))(t)
		l := list[name]
		l.path, l.dense = path, []string{"output.weight", ".attn_q.weight", ".attn_k.weight",
			".attn_v.weight", ".attn_qkv.weight", ".attn_output.weight", ".attn_out.weight"}
		for _, x := range set.Tensors {
			l.pieces = append(l.pieces, piece{set.Files[x.File], x.Name, x.Begin, x.End})
		}
		list[name] = l
	}
	return list
}

func isDense(tensor string) bool {
	return tensor == "lm_head.weight" || strings.Contains(tensor, ".self_attn.") &&
		strings.HasSuffix(tensor, "_proj.weight")
}

// TestAhead: without a copy complete files are read; with one, all except the dense weights, and
// the copy.
func TestAhead(t *testing.T) {
	replacing := filepath.Join(t.TempDir(), "it.q8")
	hosttest.Check(t, os.WriteFile(replacing, make([]byte, 12345), 0o644))
	for name, l := range layouts(t) {
		found := hosttest.Must(checkpoint.Resolve(l.path))(t)
		whole, need, err := found.Ahead(checkpoint.Replaced{})
		if err != nil || need != found.Bytes || len(whole) == 0 {
			t.Fatalf("%s: %d files, %d bytes of %d, %v", name, len(whole), need, found.Bytes, err)
		}
		for _, p := range whole {
			if len(p.Without) > 0 {
				t.Errorf("%s without a copy: %v of %s is left out", name, p.Without, p.Path)
			}
		}
		for _, c := range []struct {
			what string
			does func(string) bool
			left func(string) bool
		}{
			{"with a copy", isDense, func(x string) bool {
				return slices.ContainsFunc(l.dense, func(d string) bool {
					return x == strings.TrimPrefix(d, ".") || strings.HasPrefix(d, ".") &&
						strings.HasSuffix(x, d)
				})
			}},
			{"with a copy of q alone",
				func(x string) bool { return strings.HasSuffix(x, ".q_proj.weight") },
				func(x string) bool {
					return strings.HasSuffix(x, ".q_proj.weight") ||
						strings.HasSuffix(x, ".attn_q.weight")
				}},
		} {
			parts, need, err := found.Ahead(checkpoint.Replaced{File: replacing, Covers: c.does})
			if err != nil || len(parts) != len(whole)+1 || parts[len(whole)].Path != replacing ||
				len(parts[len(whole)].Without) > 0 {
				t.Fatalf("%s %s: %d files, %v", name, c.what, len(parts), err)
			}
			var got, want []string
			var bytes int64
			for i, p := range parts[:len(whole)] {
				if p.Path != whole[i].Path ||
					!slices.IsSortedFunc(p.Without,
						func(a, b [2]int64) int { return int(a[0] - b[0]) }) {
					t.Errorf("%s %s: %s without %v", name, c.what, p.Path, p.Without)
				}
				for _, s := range p.Without {
					got = append(got, fmt.Sprint(p.Path, s[0], s[1]))
				}
			}
			for _, x := range l.pieces {
				if c.left(x.name) {
					want = append(want, fmt.Sprint(x.file, x.begin, x.end))
					bytes += x.end - x.begin
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || need != found.Bytes-bytes+12345 {
				t.Errorf("%s %s: left out are\n%v, should be\n%v; %d bytes of memory", name, c.what,
					got, want, need)
			}
			if c.what == "with a copy" && len(want) < 5 {
				t.Errorf("%s: only %d tensors are dense", name, len(want))
			}
		}
		if _, _, err := found.Ahead(checkpoint.Replaced{File: replacing + ".gone",
			Covers: isDense}); err == nil {
			t.Errorf("%s: a copy that is not there was taken", name)
		}
	}
}

// TestLoadWithout: skipped tensors of a GGUF file are not loaded with the others, but on request.
func TestLoadWithout(t *testing.T) {
	want := golden(t, "T1")
	path := hosttest.Must(modeltest.WriteGGUF(want, t.TempDir(), "it", modeltest.LlamaBF16, 1))(t)
	c := hosttest.Must(checkpoint.Open(path))(t)
	defer c.Close()
	var bytes int64
	for _, x := range want.Spec.Tensors() {
		if !isDense(x.Name) {
			bytes += x.Bytes()
		}
	}
	for _, load := range []struct {
		without func(string) bool
		bytes   int64
	}{{isDense, bytes}, {nil, c.Bytes() - bytes}} {
		var total int64
		if err := c.Load(t.Context(), 0, load.without,
			func(_, n int64) { total = n }); err != nil || total != load.bytes {
			t.Errorf("%d bytes were loaded, %d expected, %v", total, load.bytes, err)
		}
	}
}

// TestFileStates: a write to a file changes its state, even if size and modification time are
// unchanged; so does a replacement.
func TestFileStates(t *testing.T) {
	folder := t.TempDir()
	hosttest.Check(t, modeltest.New(modeltest.Tiny(), 2).Write(folder))
	found := hosttest.Must(checkpoint.Resolve(folder))(t)
	before := found.FileStates()
	if before.Files == nil {
		t.Skip("this system does not tell when a file was changed")
	}
	settled := checkpoint.FileStates{Files: before.Files[1:],
		Seen: time.Unix(0, before.Files[1].Changed).Add(checkpoint.Settling)}
	c := hosttest.Must(checkpoint.Open(folder))(t)
	if opened := c.FileStates(); len(before.Files) != 2 ||
		!slices.Equal(opened.Files, before.Files) || opened.Seen.Before(before.Seen) ||
		settled.Unsettled() != before.Files[1].Path {
		t.Errorf("%+v before it was opened, %+v after", before, opened)
	}
	hosttest.Check(t, c.Close())
	path := before.Files[1].Path
	data := hosttest.Must(os.ReadFile(path))(t)
	stat := hosttest.Must(os.Stat(path))(t)
	differs := func(what string, change func() error) {
		t.Helper()
		now := found.FileStates()
		// at most until the next step of the file system's clock
		for slices.Equal(found.FileStates().Files, now.Files) {
			hosttest.Check(t, change())
			if time.Since(now.Seen) > 2*time.Minute {
				t.Fatalf("%s was not noticed", what)
			}
		}
		if s := found.FileStates().Files[1]; s.Size != stat.Size() ||
			s.Modified != stat.ModTime().UnixNano() {
			t.Errorf("%s: the test is none, size or modification time changed too", what)
		}
	}
	differs("a byte in its place", func() error {
		data[len(data)-1] ^= 1
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt(data[len(data)-1:], int64(len(data)-1))
			f.Close()
		}
		if err == nil {
			err = os.Chtimes(path, stat.ModTime(), stat.ModTime())
		}
		return err
	})
	differs("a file in its place", func() error {
		if err := os.WriteFile(path+".new", data, 0o644); err != nil {
			return err
		}
		if err := os.Chtimes(path+".new", stat.ModTime(), stat.ModTime()); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	})
	if (checkpoint.Model{Demo: true}).FileStates().Files != nil {
		t.Error("the demo has files")
	}
}
