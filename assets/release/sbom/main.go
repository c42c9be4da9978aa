// Command sbom writes a built executable's CycloneDX 1.6 bill of materials: the modules that Go
// recorded in it, with their checksums, the toolchain, and other embedded or linked parts. The same
// executable gives the same bytes.
//
//	go run ./assets/release/sbom EXECUTABLE OUT.json
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// part is a JSON object of the bill.
type part = map[string]any

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom EXECUTABLE OUT.json")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(path, out string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	// A version-8 UUID, here from a hash of the executable.
	id := sum
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	program := part{"type": "application", "name": filepath.Base(path),
		"version": info.Main.Version, "purl": purl(&info.Main),
		"hashes": []part{{"alg": "SHA-256", "content": hex.EncodeToString(sum[:])}}}
	var built []part
	for _, key := range []string{"GOOS", "GOARCH", "CGO_ENABLED", "-tags", "vcs.revision",
		"vcs.modified"} {
		if v := settings[key]; v != "" {
			built = append(built, part{"name": "go:" + key, "value": v})
		}
	}
	program["properties"] = built
	components := []part{{"type": "platform", "name": "go",
		"version": strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, part{"type": "library", "name": m.Path,
			"version": m.Version, "purl": purl(m),
			"properties": []part{{"name": "go:sum", "value": m.Sum}}})
	}
	components = append(components,
		part{"type": "data", "name": "o200k_harmony vocabulary"},
		part{"type": "data", "name": "Unicode character classes", "version": "16.0.0"},
		part{"type": "machine-learning-model", "name": "ossrun demo"})
	for _, name := range append([]string{"libc++", "compiler-rt"}, map[string][]string{
		"linux":   {"musl", "libunwind"},
		"windows": {"mingw-w64", "libunwind"}}[settings["GOOS"]]...) {
		components = append(components, part{"type": "library", "name": name})
	}
	doc := part{"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"serialNumber": fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10],
			id[10:16]),
		"metadata": part{"component": program}, "components": components}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

func purl(m *debug.Module) string {
	if m.Version == "" || m.Version == "(devel)" {
		return "pkg:golang/" + m.Path
	}
	return "pkg:golang/" + m.Path + "@" + m.Version
}
