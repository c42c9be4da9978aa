package kernels

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// The artefacts that the binary embeds are built from the sources next to this test: same digest,
// same bytes, same flags, all of them.
func TestArtefactsAreNotStale(t *testing.T) {
	read := func(name string) []byte {
		data, err := assets.Kernels.ReadFile("kernels/" + name)
		if err != nil {
			t.Fatalf("%v: run go generate ./gpu/...", err)
		}
		return data
	}
	var m Manifest
	hosttest.Check(t, json.Unmarshal(read("manifest.json"), &m))
	digest := hosttest.Must(Digest("."))(t)
	built := map[string]bool{"manifest.json": true}
	entry := func(file string, flags []string) Artefact {
		a, ok := m.Artefacts[file]
		if !ok {
			t.Errorf("no %s in the manifest: run go generate ./gpu/...", file)
		} else if a.Sources != digest {
			t.Errorf("the kernel sources have changed since %s was built: run go generate ./gpu/...", file)
		} else if !slices.Equal(a.Flags, flags) {
			t.Errorf("%s was built with other flags: run go generate ./gpu/...", file)
		}
		return a
	}
	is := func(file string, data []byte, a Artefact) {
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != a.SHA256 ||
			len(data) != a.Bytes {
			t.Errorf("%s is not the file that the manifest names", file)
		}
	}
	check := func(file string, flags []string) Artefact {
		a := entry(file, flags)
		built[file] = true
		is(file, read(file), a)
		return a
	}
	for _, arch := range Archs {
		if arch.Vendor == AMD {
			check(arch.File(), arch.Flags())
			continue
		}
		text := entry(arch.Text(), arch.Flags())
		if arch.HasText() {
			if a := check(arch.File(), []string{"-9"}); a.PTXDigest != text.SHA256 {
				t.Errorf("%s is of another text: run go generate ./gpu/...", arch.File())
			}
			is(arch.Text(), image(t, arch), text)
		}
	}
	for _, c := range Cubins {
		if a := check(c.File(), c.Flags()); a.PTXDigest != m.Artefacts[c.From+".ptx"].SHA256 ||
			!strings.Contains(a.Compiler, "V12.9.") {
			t.Errorf("%s was assembled from other PTX, or by %q: run go generate ./gpu/...",
				c.File(), a.Compiler)
		}
	}
	entries := hosttest.Must(assets.Kernels.ReadDir("kernels"))(t)
	for _, e := range entries {
		if !built[e.Name()] {
			t.Errorf("assets/kernels/%s is not built", e.Name())
		}
	}
}

func TestKernelTableIsNotStale(t *testing.T) {
	signatures := hosttest.Must(readSignatures("."))(t)
	want := kernelTable(signatures)
	if *update {
		hosttest.Check(t, os.WriteFile("kernels.md", []byte(want), 0o644))
	}
	if have, err := os.ReadFile("kernels.md"); err != nil || string(have) != want {
		t.Errorf("kernels.md is not what the sources say (%v): run go generate ./gpu/...", err)
	}
}

// TestKernelsAreEmulated: the emulation has every kernel, for blocks of the same size.
func TestKernelsAreEmulated(t *testing.T) {
	emulate := regexp.MustCompile(`(?m)^EMULATE\((\w+), (\w+)\)`)
	emulated := map[string]string{}
	for _, file := range hosttest.Must(filepath.Glob("*.cu"))(t) {
		text := expanded(string(hosttest.Must(os.ReadFile(file))(t)))
		for _, m := range emulate.FindAllStringSubmatch(text, -1) {
			emulated[m[1]] = file + " " + m[2]
		}
	}
	for _, s := range hosttest.Must(readSignatures("."))(t) {
		if want := fmt.Sprint(s.File, " ", s.Threads); emulated[s.Name] != want {
			t.Errorf("%s of %s threads is emulated as in %q", s.Name, want, emulated[s.Name])
		}
		delete(emulated, s.Name)
	}
	if len(emulated) > 0 {
		t.Errorf("no kernels: %v", emulated)
	}
}

// Every kernel is in the translation unit that the device compilers build.
func TestEveryFileIsBuilt(t *testing.T) {
	unit := hosttest.Must(os.ReadFile("kernels.cu"))(t)
	files, err := filepath.Glob("*.cu")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d sources, %v", len(files), err)
	}
	for _, file := range files {
		if file != "kernels.cu" && !slices.Contains(includes(string(unit)), file) {
			t.Errorf("kernels.cu does not include %s", file)
		}
	}
}

func includes(source string) (files []string) {
	for rest := source; ; {
		var name string
		if n, _ := fmt.Sscanf(rest, "#include %q", &name); n == 1 {
			files = append(files, name)
		}
		at := slices.Index([]byte(rest), '\n')
		if at < 0 {
			return files
		}
		rest = rest[at+1:]
	}
}

// signature is a kernel as its source declares it.
type signature struct {
	Name       string
	File       string
	Threads    int // most in a block
	Parameters []parameter
	Comment    string // above it
}

type parameter struct{ Type, Name string }

var (
	familyPattern  = regexp.MustCompile(`(?m)^#define (\w+)\((.*)\)((?:\s*\\\n[^\\\n]*)+)\n`)
	kernelPattern  = regexp.MustCompile(`(?s)((?://[^\n]*\n)*)KERNEL\((\w+)(?:, \w+)?\)\s*(\w+)\(([^)]*)\)\s*\{`)
	commentPattern = regexp.MustCompile(`(?m)^// ?`)
	parameterPart  = regexp.MustCompile(`^(.*[ *])(\w+)$`)
)

// expanded writes out the kernels that a source's macros make.
func expanded(text string) string {
	for _, m := range familyPattern.FindAllStringSubmatch(text, -1) {
		use := regexp.MustCompile(`(?m)^` + m[1] + `\((.*)\)$`)
		text = use.ReplaceAllStringFunc(strings.Replace(text, m[0], "", 1), func(u string) string {
			body, args := m[3], strings.Split(use.FindStringSubmatch(u)[1], ", ")
			for i, name := range strings.Split(m[2], ", ") {
				body = regexp.MustCompile(`(##)?\b`+name+`\b`).ReplaceAllString(body, args[i])
			}
			return strings.TrimSpace(regexp.MustCompile(`\s*\\\n  `).ReplaceAllString(body, "\n"))
		})
	}
	return text
}

// readSignatures lists the kernels in dir, by name.
func readSignatures(dir string) ([]signature, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.cu"))
	if err != nil {
		return nil, err
	}
	var all []signature
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range kernelPattern.FindAllStringSubmatch(expanded(string(data)), -1) {
			s := signature{Name: m[3], File: filepath.Base(file),
				Comment: commentPattern.ReplaceAllString(strings.TrimSpace(m[1]), "")}
			if _, err := fmt.Sscan(m[2], &s.Threads); err != nil {
				return nil, fmt.Errorf("%s: %s: the size of its block is not a number: %s", s.File,
					s.Name, m[2])
			}
			for part := range strings.SplitSeq(m[4], ",") {
				p := parameterPart.FindStringSubmatch(strings.Join(strings.Fields(part), " "))
				if p == nil {
					return nil, fmt.Errorf("%s: %s: parameter %q is not a type and a name", s.File,
						s.Name, part)
				}
				s.Parameters = append(s.Parameters, parameter{strings.TrimSpace(p[1]), p[2]})
			}
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b signature) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// kernelTable is kernels.md: every kernel with its parameters, by file.
func kernelTable(signatures []signature) string {
	var b strings.Builder
	b.WriteString("# The kernels\n\nWritten by `go generate ./gpu/...` from the sources; a test " +
		"holds it to them. Blocks have as many threads as stand\n" +
		"behind the name. Pointers are device addresses.\n")
	byFile := slices.Clone(signatures)
	slices.SortStableFunc(byFile,
		func(a, b signature) int { return strings.Compare(a.File, b.File) })
	file := ""
	for _, s := range byFile {
		if s.File != file {
			file = s.File
			fmt.Fprintf(&b, "\n## %s\n", file)
		}
		fmt.Fprintf(&b, "\n**%s** <%d>(", s.Name, s.Threads)
		for i, p := range s.Parameters {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "`%s %s`", p.Type, p.Name)
		}
		b.WriteString(")\n")
		if s.Comment != "" {
			fmt.Fprintf(&b, "\n%s\n", s.Comment)
		}
	}
	return b.String()
}
