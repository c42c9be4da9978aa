// Command generate builds what is derived from the kernel sources: assets/kernels/* with its manifest, and kernels.md. It needs
// Debian's clang-19, lld-19, clang-22 and lld-22, and nothing of a GPU's maker. Run it as `go generate ./gpu/...`.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/gpu/kernels"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run is started by go generate in gpu/kernels.
func run(ctx context.Context) error {
	const sources = "."
	out := filepath.Join("..", "..", "assets", "kernels")
	if dir := os.Getenv("OUT"); dir != "" { // for the check that two builds give the same bytes
		out = dir
	}
	signatures, err := kernels.Signatures(sources)
	if err != nil {
		return err
	}
	if err := os.WriteFile("kernels.md", []byte(kernels.Table(signatures)), 0o644); err != nil {
		return err
	}
	digest, err := kernels.Digest(sources)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	manifest := kernels.Manifest{Sources: digest, Artefacts: map[string]kernels.Artefact{}}
	var mu sync.Mutex
	var failed []error
	var group sync.WaitGroup
	atOnce := make(chan struct{}, 2) // each takes a processor and some hundred megabytes
	for _, arch := range kernels.Archs {
		group.Go(func() {
			atOnce <- struct{}{}
			artefact, err := build(ctx, arch, out)
			<-atOnce
			mu.Lock()
			defer mu.Unlock()
			manifest.Artefacts[arch.File()] = artefact
			failed = append(failed, err)
		})
	}
	group.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "manifest.json"), append(text, '\n'), 0o644)
}

// build compiles kernels.cu for one architecture.
func build(ctx context.Context, arch kernels.Arch, out string) (kernels.Artefact, error) {
	a := kernels.Artefact{Flags: arch.Flags()}
	version, err := exec.CommandContext(ctx, arch.Clang, "--version").Output()
	if err != nil {
		return a, fmt.Errorf("%s: %w: install %s and %s from Debian", arch.Clang, err, arch.Clang, strings.Replace(arch.Clang, "clang", "lld", 1))
	}
	a.Compiler, _, _ = strings.Cut(string(version), "\n")
	file := filepath.Join(out, arch.File())
	command := exec.CommandContext(ctx, arch.Clang, append(a.Flags, "kernels.cu", "-o", file)...)
	if text, err := command.CombinedOutput(); err != nil {
		return a, fmt.Errorf("%s: %w\n%s", arch.Name, err, text)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		return a, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return a, err
	}
	sum := sha256.Sum256(data)
	a.SHA256, a.Bytes = hex.EncodeToString(sum[:]), len(data)
	return a, nil
}
