// Command generate builds the artefacts of the kernel sources: assets/kernels/* with its
// manifest. It needs Debian's clang-19, lld-19, clang-22 and lld-22, and for the
// cubins NVIDIA's assembler, which assembler.sh takes from PyPI. Run it as `go generate ./gpu/...`.
//
// Artefacts that exist and were built from these sources, with these flags, by this compiler, stay.
// With names of architectures as arguments only those are built, for a machine that has little
// time; a test says which others are stale. -texts DIR writes the PTX of every architecture there,
// also of those shipped only as cubins, and builds nothing else.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ossrun/ossrun/gpu/kernels"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out := flag.String("out", filepath.Join("..", "..", "assets", "kernels"),
		"build into `DIR`, for the check that two builds give the same bytes")
	texts := flag.String("texts", "", "write the PTX of all architectures into `DIR`, and no more")
	flag.Parse()
	build := func() error { return run(ctx, *out, flag.Args()) }
	if *texts != "" {
		build = func() error { return writeTexts(ctx, *out, *texts, flag.Args()) }
	}
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// builder makes artefacts in work and collects their manifest.
type builder struct {
	out, work string
	names     []string // of architectures; none: all
	digest    string   // of the sources
	have      map[string]kernels.Artefact

	mu       sync.Mutex
	manifest kernels.Manifest
	texts    map[string]*text // by architecture
}

// run, in gpu/kernels, builds the named architectures, or all, into out.
func run(ctx context.Context, out string, names []string) error {
	sum, err := kernels.Digest(".")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	// Artefacts move in together: a run that dies leaves nothing half-written.
	work, err := os.MkdirTemp(filepath.Dir(out), ".kernels-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b := newBuilder(out, work, names, sum)
	if err := forEach(kernels.Archs,
		func(a kernels.Arch) error { return b.compile(ctx, a) }); err != nil {
		return err
	}
	if err := errors.Join(
		forEach(kernels.Cubins, func(c kernels.Cubin) error { return b.assemble(ctx, c) }),
		forEach(kernels.Archs, func(a kernels.Arch) error { return b.pack(ctx, a) })); err != nil {
		return err
	}
	files, err := os.ReadDir(work)
	if err != nil {
		return err
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), ".ptx") {
			continue // its cubins and its packed form are kept
		}
		if err := os.Rename(filepath.Join(work, file.Name()),
			filepath.Join(out, file.Name())); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(b.manifest, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "manifest.json"), append(text, '\n'), 0o644)
}

func newBuilder(out, work string, names []string, sum string) *builder {
	b := &builder{out: out, work: work, names: names, digest: sum, have: currentArtefacts(out),
		manifest: kernels.Manifest{Artefacts: map[string]kernels.Artefact{}},
		texts:    map[string]*text{}}
	for _, a := range kernels.Archs {
		b.texts[a.Name] = &text{}
	}
	return b
}

// forEach makes an artefact of each, two at once: each takes a core and some hundred megabytes.
func forEach[T any](list []T, artefact func(T) error) error {
	failed := make([]error, len(list))
	var all errgroup.Group
	all.SetLimit(2)
	for i, x := range list {
		all.Go(func() error {
			failed[i] = artefact(x)
			return nil
		})
	}
	return errors.Join(all.Wait(), errors.Join(failed...))
}

// keep enters an artefact in the manifest: the existing one if it is current, else the one that
// build makes; none if it is not wanted and does not exist.
func (b *builder) keep(file, name string, entry kernels.Artefact,
	build func(to string) error) error {
	a, ok := b.have[file]
	current := a.Sources == entry.Sources && a.Compiler == entry.Compiler &&
		a.PTXDigest == entry.PTXDigest && slices.Equal(a.Flags, entry.Flags)
	if b.wants(name) && !current {
		to := filepath.Join(b.work, file)
		if err := build(to); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.Chmod(to, 0o644); err != nil {
			return err
		}
		data, err := os.ReadFile(to)
		if err != nil {
			return err
		}
		a, ok = entry, true
		a.SHA256, a.Bytes = digest(data), len(data)
	}
	if ok {
		b.mu.Lock()
		b.manifest.Artefacts[file] = a
		b.mu.Unlock()
	}
	return nil
}

func (b *builder) wants(name string) bool {
	return len(b.names) == 0 || slices.Contains(b.names, name)
}

// compile makes a code object of kernels.cu, or its PTX, which appears only in the manifest.
func (b *builder) compile(ctx context.Context, arch kernels.Arch) error {
	entry, err := b.entry(ctx, arch)
	if err != nil {
		return err
	}
	if arch.Vendor == kernels.NVIDIA {
		return b.keep(arch.Text(), arch.Name, entry, func(string) error {
			_, err := b.text(ctx, arch)
			return err
		})
	}
	return b.keep(arch.File(), arch.Name, entry, func(to string) error {
		return command(ctx, arch.Clang, append(entry.Flags, "kernels.cu", "-o", to)...)
	})
}

// entry is the current manifest entry for an architecture's PTX or code object.
func (b *builder) entry(ctx context.Context, arch kernels.Arch) (kernels.Artefact, error) {
	version, err := line(ctx, "", arch.Clang)
	if err != nil {
		return kernels.Artefact{}, fmt.Errorf("%s: %w: install %s and %s from Debian", arch.Clang,
			err, arch.Clang, strings.Replace(arch.Clang, "clang", "lld", 1))
	}
	return kernels.Artefact{Sources: b.digest, Compiler: version, Flags: arch.Flags()}, nil
}

// line is the line of a program's --version that has a word in it.
func line(ctx context.Context, word, program string) (string, error) {
	version, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", err
	}
	for l := range strings.Lines(string(version)) {
		if strings.Contains(l, word) {
			return strings.TrimSpace(l), nil
		}
	}
	return "", fmt.Errorf("its --version has no %q", word)
}

func command(ctx context.Context, program string, args ...string) error {
	if text, err := exec.CommandContext(ctx, program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	return nil
}

// currentArtefacts are the artefacts in dir that match its manifest, and their texts.
func currentArtefacts(dir string) map[string]kernels.Artefact {
	var m kernels.Manifest
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil || json.Unmarshal(text, &m) != nil {
		return nil
	}
	maps.DeleteFunc(m.Artefacts, func(file string, a kernels.Artefact) bool {
		if strings.HasSuffix(file, ".ptx") {
			return false
		}
		data, err := os.ReadFile(filepath.Join(dir, file))
		return err != nil || digest(data) != a.SHA256
	})
	return m.Artefacts
}

func digest(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }
