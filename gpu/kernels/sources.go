package kernels

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Reads the sources, for the generator and the tests: their digest and their kernels.

// Manifest is assets/kernels/manifest.json: the sources and tools of the artefacts next to it.
type Manifest struct {
	Artefacts map[string]Artefact `json:"artefacts"`
}

type Artefact struct {
	Sources   string   `json:"sources"` // Digest of the sources
	SHA256    string   `json:"sha256"`
	Bytes     int      `json:"bytes"`
	Compiler  string   `json:"compiler"` // one line of its --version
	Flags     []string `json:"flags"`
	PTXDigest string   `json:"of,omitempty"` // of a cubin: SHA256 of the PTX that was assembled
}

// Digest is the SHA-256 of the device compilers' input in dir: *.cu and *.h.
func Digest(dir string) (string, error) {
	var files []string
	for _, pattern := range []string{"*.cu", "*.h"} {
		matches, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return "", err
		}
		files = append(files, matches...)
	}
	if len(files) == 0 {
		return "", fmt.Errorf("no kernel sources in %s", dir)
	}
	slices.Sort(files)
	h := sha256.New()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", filepath.Base(file), len(data))
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Signature is a kernel as its source declares it.
type Signature struct {
	Name       string
	File       string
	Threads    int // most in a block
	Parameters []Parameter
	Comment    string // above it
}

type Parameter struct{ Type, Name string }

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

// Signatures lists the kernels in dir, by name.
func Signatures(dir string) ([]Signature, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.cu"))
	if err != nil {
		return nil, err
	}
	var all []Signature
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range kernelPattern.FindAllStringSubmatch(expanded(string(data)), -1) {
			s := Signature{Name: m[3], File: filepath.Base(file),
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
				s.Parameters = append(s.Parameters, Parameter{strings.TrimSpace(p[1]), p[2]})
			}
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Signature) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Table is kernels.md: every kernel with its parameters, by file.
func Table(signatures []Signature) string {
	var b strings.Builder
	b.WriteString("# The kernels\n\nWritten by `go generate ./gpu/...` from the sources; a test " +
		"holds it to them. Blocks have as many threads as stand\n" +
		"behind the name. Pointers are device addresses.\n")
	byFile := slices.Clone(signatures)
	slices.SortStableFunc(byFile,
		func(a, b Signature) int { return strings.Compare(a.File, b.File) })
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
