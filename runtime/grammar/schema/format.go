// Reads formats.txt: the enforced formats of JSON Schema, as regular expressions.
//
// What must stay true: an expression matches a complete string; names in angle brackets are parts
// of expressions, and no formats themselves.

package schema

import (
	_ "embed"
	"regexp"
	"strings"
)

//go:embed formats.txt
var formatLines string

// formats must match completely.
var formats = readFormats()

var namedPart = regexp.MustCompile(`<[a-z0-9-]+>`)

func readFormats() map[string]string {
	all, parts := map[string]string{}, map[string]string{}
	for line := range strings.Lines(strings.ReplaceAll(formatLines, "\n\t", "")) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		text = namedPart.ReplaceAllStringFunc(text, func(n string) string { return parts[n] })
		switch {
		case name == "" || name == "#":
		case name[0] == '<':
			parts[name] = text
		default:
			all[name] = text
		}
	}
	// a URI is an IRI of ASCII
	ascii := strings.NewReplacer(parts["<beyond-uri>"], "", parts["<in-query>"], "")
	all["uri"] = ascii.Replace(all["iri"])
	all["uri-reference"] = ascii.Replace(all["iri-reference"])
	return all
}

func isEnforced(name string) bool { return formats[name] != "" }
