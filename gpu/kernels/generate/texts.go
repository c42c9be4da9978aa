package main

// The texts: PTX as the compiler writes it, of which cubins are made. Those that can run on any
// card are shipped, compressed without a time or a name; of the others the manifest keeps the
// digest.

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/ossrun/ossrun/gpu/kernels"
)

// text is the PTX of an architecture, compiled on first use.
type text struct {
	compileOnce sync.Once
	path        string
	err         error
}

// text compiles an architecture's PTX, once; it must equal the manifest's of the same sources.
func (b *builder) text(ctx context.Context, arch kernels.Arch) (string, error) {
	t := b.texts[arch.Name]
	t.compileOnce.Do(func() {
		t.path = filepath.Join(b.work, arch.Text())
		t.err = command(ctx, arch.Clang, append(arch.Flags(), "kernels.cu", "-o", t.path)...)
		had := b.have[arch.Text()]
		entry, err := b.entry(ctx, arch)
		if t.err = errors.Join(t.err, err); t.err != nil || had.Sources != entry.Sources ||
			had.Compiler != entry.Compiler {
			return
		}
		data, err := os.ReadFile(t.path)
		if err != nil || digest(data) != had.SHA256 {
			t.err = fmt.Errorf("%s is not what it was (%v)", arch.Text(), err)
		}
	})
	return t.path, t.err
}

func (b *builder) manifestEntry(arch kernels.Arch) kernels.Artefact {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.manifest.Artefacts[arch.Text()]
}

func (b *builder) pack(ctx context.Context, arch kernels.Arch) error {
	from := b.manifestEntry(arch)
	if !arch.HasText() || from.Sources != b.digest {
		return nil
	}
	entry := kernels.Artefact{Sources: b.digest, Compiler: "gzip", Flags: []string{"-9"},
		PTXDigest: from.SHA256}
	return b.keep(arch.File(), arch.Name, entry, func(to string) error {
		path, err := b.text(ctx, arch)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, compressed(data), 0o644)
	})
}

// writeTexts writes the PTX of the named architectures; no name means all.
func writeTexts(ctx context.Context, out, to string, names []string) error {
	sum, err := kernels.Digest(".")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	b := newBuilder(out, to, names, sum)
	return forEach(kernels.Archs, func(a kernels.Arch) error {
		if a.Vendor == kernels.NVIDIA && b.wants(a.Name) {
			_, err := b.text(ctx, a)
			return err
		}
		return nil
	})
}

func compressed(data []byte) []byte {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		panic(err) // of the constant above
	}
	z.Write(data) // into memory: neither can fail
	z.Close()
	return out.Bytes()
}
