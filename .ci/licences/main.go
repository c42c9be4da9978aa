// Command licences checks that every module we link has a licence we may ship, and prints the list.
// It runs in .ci/run.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

// known maps a phrase that stands in a licence's text to its name. The first that fits wins.
var known = []struct{ phrase, name string }{
	{"Apache License", "Apache-2.0"},
	{"Mozilla Public License", "MPL-2.0"},
	{"Permission is hereby granted, free of charge", "MIT"},
	{"Redistribution and use in source and binary forms", "BSD"},
	{"Permission to use, copy, modify, and/or distribute this software for any", "ISC"},
}

func main() {
	out, err := exec.Command("go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}",
		".").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "go list:", err)
		os.Exit(1)
	}
	seen := map[string]bool{}
	var rows []string
	bad := 0
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		f := strings.Fields(line)
		if len(f) != 3 || seen[f[0]] {
			continue
		}
		seen[f[0]] = true
		name := licence(f[2])
		if name == "" {
			bad++
			name = "UNKNOWN"
		}
		rows = append(rows, fmt.Sprintf("%-12s %s %s", name, f[0], f[1]))
	}
	sort.Strings(rows)
	fmt.Println(strings.Join(rows, "\n"))
	if bad > 0 || len(rows) == 0 {
		fmt.Fprintf(os.Stderr, "%d of %d modules without a known licence\n", bad, len(rows))
		os.Exit(1)
	}
}

func licence(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]*"))
	more, _ := filepath.Glob(filepath.Join(dir, "COPYING*"))
	for _, f := range append(files, more...) {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		flat := strings.Join(strings.Fields(string(text)), " ")
		for _, k := range known {
			if strings.Contains(flat, k.phrase) {
				return k.name
			}
		}
	}
	return ""
}
