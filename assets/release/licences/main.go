// Command licences lists the licences of every module that is linked on any system, and fails on
// one that may not be distributed; .ci/run runs it. With an argument it writes the licence texts of
// a release: our own, those modules', Go's standard library's, and those that zig links (musl,
// libc++, libunwind, compiler-rt, mingw-w64). A module without a text is an error.
//
//	go run ./assets/release/licences
//	go run ./assets/release/licences ZIG > OUT     ZIG is what assets/release/zig prints
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	var err error
	switch len(os.Args) {
	case 1:
		err = list(os.Stdout)
	case 2:
		err = write(os.Stdout, filepath.Join(filepath.Dir(os.Args[1]), "lib"))
	default:
		fmt.Fprintln(os.Stderr, "usage: licences [ZIG > OUT]")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// textOf maps modules whose README.md states a licence without its text to a module of the same
// author with the text.
var textOf = map[string]string{"github.com/mattn/go-localereader": "github.com/mattn/go-isatty"}

// part is a linked or embedded component with the files of its licence.
type part struct {
	name  string
	files []string
}

func write(w io.Writer, zig string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	parts := []part{
		{"ossrun, with the demo model", []string{"LICENSE"}},
		{"the o200k_harmony vocabulary, from openai/gpt-oss (Apache-2.0, as above)", nil},
		{"the character classes of the tokenizer, from the Unicode Character Database 16.0.0",
			[]string{"assets/release/unicode-licence.txt"}},
		{"PDFium, which reads PDF documents", []string{"assets/release/pdfium-licences.txt"}},
		{"Go's standard library and runtime",
			[]string{filepath.Join(strings.TrimSpace(string(root)), "LICENSE")}},
		{"musl (Linux)", []string{filepath.Join(zig, "libc/musl/COPYRIGHT")}},
		{"libc++ (all systems)", []string{filepath.Join(zig, "libcxx/LICENSE.TXT")}},
		{"libc++abi (all systems)", []string{filepath.Join(zig, "libcxxabi/LICENSE.TXT")}},
		{"libunwind (Linux, Windows)", []string{filepath.Join(zig, "libunwind/LICENSE.TXT")}},
		{"zig, whose compiler-rt is linked in (all systems)",
			[]string{filepath.Join(zig, "../LICENSE")}},
		{"mingw-w64's runtime (Windows)", []string{filepath.Join(zig, "libc/mingw/COPYING")}},
	}
	modules, err := linked()
	if err != nil {
		return err
	}
	for _, p := range append(parts, modules...) {
		fmt.Fprintf(w, "%s\n%s\n\n", strings.Repeat("=", 100), p.name)
		for _, name := range p.files {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%s\n\n", bytes.TrimSpace(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// licencePhrases maps a phrase in a licence's text to its name. The first match wins.
var licencePhrases = []struct{ phrase, name string }{
	{"Apache License", "Apache-2.0"},
	{"Mozilla Public License", "MPL-2.0"},
	{"Permission is hereby granted, free of charge", "MIT"},
	{"Redistribution and use in source and binary forms", "BSD"},
	{"distribute this software for any", "ISC"},
}

func list(w io.Writer) error {
	modules, err := linked()
	if err != nil {
		return err
	}
	bad := 0
	for _, m := range modules {
		name := m.licence()
		if name == "" {
			bad++
			name = "UNKNOWN"
		}
		fmt.Fprintf(w, "%-12s %s\n", name, m.name)
	}
	if bad > 0 || len(modules) == 0 {
		return fmt.Errorf("%d of %d modules without a known licence", bad, len(modules))
	}
	return nil
}

// licence is the name of a part's licence, or "" if unknown.
func (p part) licence() string {
	for _, file := range p.files {
		text, _ := os.ReadFile(file) // its name was just listed
		flat := strings.Join(strings.Fields(string(text)), " ")
		for _, k := range licencePhrases {
			if strings.Contains(flat, k.phrase) {
				return k.name
			}
		}
	}
	return ""
}

// linked lists the modules linked into the program of any system, without duplicates.
func linked() ([]part, error) {
	var list []part
	for _, system := range []string{"linux", "windows", "darwin"} {
		parts, err := linkedOn(system)
		if err != nil {
			return nil, err
		}
		list = append(list, parts...)
	}
	slices.SortFunc(list, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(list, func(a, b part) bool { return a.name == b.name }), nil
}

func linkedOn(system string) ([]part, error) {
	list := exec.Command("go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}", ".")
	list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=1")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %s: %w", system, err)
	}
	folders := map[string]string{}
	var modules [][]string // path, version, folder
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 && folders[f[0]] == "" {
			folders[f[0]] = f[2]
			modules = append(modules, f)
		}
	}
	var parts []part
	for _, m := range modules {
		files, err := texts(m[2])
		if author := folders[textOf[m[0]]]; err == nil && len(files) == 0 && author != "" {
			files, err = texts(author)
			files = append([]string{filepath.Join(m[2], "README.md")}, files...)
		}
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, errors.New(m[0] + " has no licence file")
		}
		parts = append(parts, part{m[0] + " " + m[1], files})
	}
	return parts, nil
}

func texts(folder string) (files []string, err error) {
	for _, pattern := range []string{"[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]*", "COPYING*", "NOTICE*"} {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, paths...)
	}
	return files, nil
}
