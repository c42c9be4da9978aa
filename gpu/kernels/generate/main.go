// Command generate builds what is derived from the kernel sources: assets/kernels/* with its manifest, and kernels.md. It needs
// Debian's clang-19, lld-19, clang-22 and lld-22, and nothing of a GPU's maker. Run it as `go generate ./gpu/...`.
//
// What is there already and was built from these sources, with these flags, by this compiler, stays. With names of architectures as arguments
// only those are built, for a machine that has little time; a test says which others are stale.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/gpu/kernels"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out := flag.String("out", filepath.Join("..", "..", "assets", "kernels"), "build into `DIR`, for the check that two builds give the same bytes")
	flag.Parse()
	if err := run(ctx, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run builds the named architectures, all of them where none is named, into out. It is started by go generate in gpu/kernels.
func run(ctx context.Context, out string, names []string) error {
	const sources = "."
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
	// Built beside the folder and moved in whole: a run that dies leaves nothing half written, and nothing of its own, in it.
	work, err := os.MkdirTemp(filepath.Dir(out), ".kernels-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	manifest := kernels.Manifest{Artefacts: map[string]kernels.Artefact{}}
	have := built(out)
	var mu sync.Mutex
	var failed []error
	var group sync.WaitGroup
	atOnce := make(chan struct{}, 2) // each takes a processor and some hundred megabytes
	for _, arch := range kernels.Archs {
		group.Go(func() {
			atOnce <- struct{}{}
			artefact, there := have[arch.File()]
			var err error
			if wanted := len(names) == 0 || slices.Contains(names, arch.Name); wanted && !current(ctx, artefact, arch, digest) {
				artefact, err = build(ctx, arch, work)
				artefact.Sources, there = digest, true
			}
			<-atOnce
			mu.Lock()
			defer mu.Unlock()
			if there {
				manifest.Artefacts[arch.File()] = artefact
			}
			failed = append(failed, err)
		})
	}
	group.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	for _, arch := range kernels.Archs {
		if err := os.Rename(filepath.Join(work, arch.File()), filepath.Join(out, arch.File())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "manifest.json"), append(text, '\n'), 0o644)
}

// built are the artefacts in dir that are what its manifest says.
func built(dir string) map[string]kernels.Artefact {
	var m kernels.Manifest
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil || json.Unmarshal(text, &m) != nil {
		return nil
	}
	maps.DeleteFunc(m.Artefacts, func(file string, a kernels.Artefact) bool {
		data, err := os.ReadFile(filepath.Join(dir, file))
		sum := sha256.Sum256(data)
		return err != nil || hex.EncodeToString(sum[:]) != a.SHA256
	})
	return m.Artefacts
}

// current tells whether an artefact is what would be built.
func current(ctx context.Context, a kernels.Artefact, arch kernels.Arch, digest string) bool {
	version, err := compiler(ctx, arch)
	return err == nil && a.Sources == digest && a.Compiler == version && slices.Equal(a.Flags, arch.Flags())
}

// compiler is the first line of what the compiler says about itself.
func compiler(ctx context.Context, arch kernels.Arch) (string, error) {
	version, err := exec.CommandContext(ctx, arch.Clang, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: install %s and %s from Debian", arch.Clang, err, arch.Clang, strings.Replace(arch.Clang, "clang", "lld", 1))
	}
	line, _, _ := strings.Cut(string(version), "\n")
	return line, nil
}

// build compiles kernels.cu for one architecture.
func build(ctx context.Context, arch kernels.Arch, dir string) (kernels.Artefact, error) {
	a := kernels.Artefact{Flags: arch.Flags()}
	var err error
	if a.Compiler, err = compiler(ctx, arch); err != nil {
		return a, err
	}
	file := filepath.Join(dir, arch.File())
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
