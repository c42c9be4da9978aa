// The text of system and developer messages, with the exact wording of the models' training.

package harmony

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

func systemText(s *SystemContent, options RenderOptions) (string, error) {
	var sections, top []string
	if s.ModelIdentity != nil {
		top = append(top, *s.ModelIdentity)
	}
	if s.KnowledgeCutoff != nil {
		top = append(top, "Knowledge cutoff: "+*s.KnowledgeCutoff)
	}
	if s.ConversationStartDate != nil {
		top = append(top, "Current date: "+*s.ConversationStartDate)
	}
	if top != nil {
		sections = append(sections, strings.Join(top, "\n"))
	}
	if s.ReasoningEffort != EffortNone {
		sections = append(sections, "Reasoning: "+strings.ToLower(string(s.ReasoningEffort)))
	}
	if len(s.Tools) > 0 {
		tools, err := toolsText(s.Tools)
		if err != nil {
			return "", err
		}
		sections = append(sections, tools)
	}
	if c := s.Channels; c != nil && len(c.Valid) > 0 {
		line := "# Valid channels: " + strings.Join(c.Valid, ", ") + "."
		if c.Required {
			line += " Channel must be included for every message."
		}
		if options.FunctionTools {
			line += "\nCalls to these tools must go to the commentary channel: 'functions'."
		}
		sections = append(sections, line)
	}
	return strings.Join(sections, "\n\n"), nil
}

func developerText(d *DeveloperContent) (string, error) {
	var sections []string
	if d.Instructions != nil {
		sections = append(sections, "# Instructions", *d.Instructions)
	}
	if len(d.Tools) > 0 {
		tools, err := toolsText(d.Tools)
		if err != nil {
			return "", err
		}
		sections = append(sections, tools)
	}
	if d.ResponseFormats != "" {
		sections = append(sections, d.ResponseFormats)
	}
	return strings.Join(sections, "\n\n"), nil
}

// toolsText describes tools as TypeScript. A namespace without tools is only its description.
func toolsText(namespaces map[string]ToolNamespace) (string, error) {
	sections := []string{"# Tools"}
	for _, key := range slices.Sorted(maps.Keys(namespaces)) {
		ns := namespaces[key]
		lines := []string{"## " + ns.Name + "\n"}
		if len(ns.Tools) == 0 {
			lines = append(lines, textLines(ns.Description, "")...)
			sections = append(sections, strings.Join(lines, "\n"))
			continue
		}
		lines = append(lines, textLines(ns.Description, "// ")...)
		lines = append(lines, "namespace "+ns.Name+" {\n")
		for _, tool := range ns.Tools {
			signature, err := toolSignature(tool)
			if err != nil {
				return "", fmt.Errorf("tool %s.%s: %w", ns.Name, tool.Name, err)
			}
			lines = append(lines, textLines(tool.Description, "// ")...)
			lines = append(lines, signature+"\n")
		}
		lines = append(lines, "} // namespace "+ns.Name)
		sections = append(sections, strings.Join(lines, "\n"))
	}
	return strings.Join(sections, "\n\n"), nil
}

func toolSignature(tool ToolDescription) (string, error) {
	if len(tool.Parameters) == 0 {
		return "type " + tool.Name + " = () => any;", nil
	}
	schema, err := jsondoc.Parse(tool.Parameters, jsondoc.Serde)
	if err != nil {
		return "", fmt.Errorf("parameters: %w", err)
	}
	if schema.Kind == jsondoc.Null {
		return "type " + tool.Name + " = () => any;", nil
	}
	if tool.resolveRefs {
		schema = resolveSchema(schema)
	}
	var s strings.Builder
	typeScript(&s, schema, "")
	return "type " + tool.Name + " = (_: " + s.String() + ") => any;", nil
}

// textLines returns the lines of text, each with prefix. A line break at the end begins no line.
func textLines(text, prefix string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if cut, ok := strings.CutSuffix(line, "\n"); ok {
			line = strings.TrimSuffix(cut, "\r")
		}
		lines = append(lines, prefix+line)
	}
	return lines
}
