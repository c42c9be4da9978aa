package main

// Cubins: PTX through NVIDIA's assembler, compressed. The assembler writes no time and no path into
// its output, gzip gets none either, so the same PTX gives the same bytes.

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ossrun/ossrun/gpu/kernels"
)

// assembled makes the cubin of PTX that was compiled before.
func (b *builder) assembled(ctx context.Context, c kernels.Cubin) error {
	ptx := c.From + ".ptx"
	b.mu.Lock()
	from := b.manifest.Artefacts[ptx]
	b.mu.Unlock()
	if from.Sources != b.digest {
		return nil // not asked for, and stale
	}
	folder, err := exec.CommandContext(ctx, "./assembler.sh", "ship").Output()
	if err != nil {
		var refused *exec.ExitError
		if errors.As(err, &refused) {
			err = fmt.Errorf("%w\n%s", err, refused.Stderr)
		}
		return fmt.Errorf("NVIDIA's assembler: %w", err)
	}
	assembler := filepath.Join(strings.TrimSpace(string(folder)), "ptxas")
	version, err := line(ctx, "release", assembler)
	if err != nil {
		return fmt.Errorf("%s: %w", assembler, err)
	}
	wanted := kernels.Artefact{Sources: b.digest, Compiler: version, Flags: c.Flags(),
		Of: from.SHA256}
	return b.keep(c.File(), c.From, wanted, func(to string) error {
		in := filepath.Join(b.work, ptx)
		if _, err := os.Stat(in); err != nil { // it was current
			in = filepath.Join(b.out, ptx)
		}
		made := filepath.Join(b.work, "."+c.Name)
		defer os.Remove(made)
		if err := command(ctx, assembler, append(wanted.Flags, in, "-o", made)...); err != nil {
			return err
		}
		cubin, err := os.ReadFile(made)
		if err != nil {
			return err
		}
		return os.WriteFile(to, compressed(cubin), 0o644)
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
