package harmony

// What the chat template that comes with a model would write otherwise than this package. It is a
// program in Jinja, which is not run: its tokens and the defaults that it sets tell. Those of the
// released models, and of their repaired copies, differ in nothing.

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	markers  = regexp.MustCompile(`<\|[a-z_]{1,40}\|>`)
	defaults = []struct {
		what, standard string
		set            *regexp.Regexp
	}{
		{"the model's identity", DefaultIdentity,
			regexp.MustCompile(`set\s+model_identity\s*=\s*["']([^"'\n]{1,300})["']`)},
		{"the knowledge cutoff", DefaultKnowledgeCutoff,
			regexp.MustCompile(`Knowledge cutoff: ([0-9]{4}-[0-9]{2})`)},
		{"the reasoning effort", "medium",
			regexp.MustCompile(`set\s+reasoning_effort\s*=\s*["']([a-z]{1,20})["']`)},
	}
)

// TemplateDiffers says what a template does otherwise, each as the end of a sentence about it;
// nothing for "".
func TemplateDiffers(template string) (differs []string) {
	if template == "" {
		return nil
	}
	if !strings.Contains(template, "<|start|>") || !strings.Contains(template, "<|message|>") {
		if marker := markers.FindString(template); marker != "" {
			return []string{"has " + marker + " in place of Harmony's tokens"}
		}
		return []string{"has none of Harmony's tokens"}
	}
	for _, d := range defaults {
		if found := d.set.FindStringSubmatch(template); found != nil && found[1] != d.standard {
			differs = append(differs, fmt.Sprintf("sets %s to %q", d.what, found[1]))
		}
	}
	return differs
}
