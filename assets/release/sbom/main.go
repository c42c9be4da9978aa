// Command sbom writes what a built executable consists of as a CycloneDX 1.6 bill of materials: the
// modules that Go recorded in it, with their checksums, the toolchain, and what is embedded or
// linked in beside them. The same executable gives the same bytes.
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

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type bill struct {
	Format   string `json:"bomFormat"`
	Spec     string `json:"specVersion"`
	Serial   string `json:"serialNumber"`
	Version  int    `json:"version"`
	Metadata struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

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
	doc := bill{Format: "CycloneDX", Spec: "1.6", Version: 1}
	// A version-8 UUID, which may be made from anything: from the executable.
	id := sum
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	doc.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10],
		id[10:16])
	doc.Metadata.Component = component{Type: "application", Name: filepath.Base(path),
		Version: info.Main.Version, PURL: purl(&info.Main),
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}}
	for _, key := range []string{"GOOS", "GOARCH", "CGO_ENABLED", "-tags", "vcs.revision",
		"vcs.modified"} {
		if v := settings[key]; v != "" {
			doc.Metadata.Component.Properties = append(doc.Metadata.Component.Properties,
				property{"go:" + key, v})
		}
	}
	doc.Components = []component{{Type: "platform", Name: "go",
		Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		doc.Components = append(doc.Components, component{Type: "library", Name: m.Path,
			Version: m.Version, PURL: purl(m), Properties: []property{{"go:sum", m.Sum}}})
	}
	more := []component{
		{Type: "data", Name: "o200k_harmony vocabulary"},
		{Type: "data", Name: "Unicode character classes", Version: "16.0.0"},
		{Type: "machine-learning-model", Name: "ossrun demo"}, {Type: "library", Name: "libc++"},
		{Type: "library", Name: "compiler-rt"},
	}
	switch settings["GOOS"] {
	case "linux":
		more = append(more, component{Type: "library", Name: "musl"},
			component{Type: "library", Name: "libunwind"})
	case "windows":
		more = append(more, component{Type: "library", Name: "mingw-w64"},
			component{Type: "library", Name: "libunwind"})
	}
	doc.Components = append(doc.Components, more...)
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
