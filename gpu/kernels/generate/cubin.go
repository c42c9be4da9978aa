package main

// Cubins: PTX through NVIDIA's assembler, which writes no time and no path, compressed.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/gpu/kernels"
)

// assemble makes the cubin of PTX that was compiled before.
func (b *builder) assemble(ctx context.Context, c kernels.Cubin) error {
	arch := kernels.Archs[slices.IndexFunc(kernels.Archs, func(a kernels.Arch) bool {
		return a.Name == c.From
	})]
	from := b.manifestEntry(arch)
	if from.Sources != b.digest {
		return nil // not asked for, and stale
	}
	folder, err := exec.CommandContext(ctx, "./assembler.sh", "ship").Output()
	if err != nil {
		if refused, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w\n%s", err, refused.Stderr)
		}
		return fmt.Errorf("NVIDIA's assembler: %w", err)
	}
	assembler := filepath.Join(strings.TrimSpace(string(folder)), "ptxas")
	version, err := line(ctx, "release", assembler)
	if err != nil {
		return fmt.Errorf("%s: %w", assembler, err)
	}
	entry := kernels.Artefact{Sources: b.digest, Compiler: version, Flags: c.Flags(),
		PTXDigest: from.SHA256}
	return b.keep(c.File(), c.From, entry, func(to string) error {
		in, err := b.text(ctx, arch)
		if err != nil {
			return err
		}
		output := filepath.Join(b.work, "."+c.Name)
		defer os.Remove(output)
		args := append(slices.Clone(entry.Flags), "-v", in, "-o", output)
		message, err := exec.CommandContext(ctx, assembler, args...).CombinedOutput()
		// printed, and not as a warning, when warpgroup products wait for each other
		if err != nil || strings.Contains(string(message), "Potential Performance Loss") {
			return fmt.Errorf("%w\n%s", cmp.Or(err, errors.New("slow code")), message)
		}
		cubin, err := os.ReadFile(output)
		if err != nil {
			return err
		}
		return os.WriteFile(to, compressed(cubin), 0o644)
	})
}
