package harmony

// Differences between a model's own chat template and this package. The template is a Jinja
// program, which is not run: its tokens and defaults are compared. Those of the released models,
// and of their repaired copies, do not differ.

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

// TemplateDiffers lists the differences of a template, each as the end of a sentence about it; none
// for "".
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
		if match := d.set.FindStringSubmatch(template); match != nil && match[1] != d.standard {
			differs = append(differs, fmt.Sprintf("sets %s to %q", d.what, match[1]))
		}
	}
	return differs
}
