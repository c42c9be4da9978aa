// The parts of the system and the developer message.

package harmony

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// Effort is the requested amount of reasoning.
type Effort string

const (
	EffortNone   Effort = "" // no line about it
	EffortLow    Effort = "Low"
	EffortMedium Effort = "Medium"
	EffortHigh   Effort = "High"
)

// SystemContent is the content of the system message. Nil fields are left out.
type SystemContent struct {
	ModelIdentity   *string `json:"model_identity,omitempty"`
	ReasoningEffort Effort  `json:"reasoning_effort,omitempty"`
	// YYYY-MM-DD
	ConversationStartDate *string `json:"conversation_start_date,omitempty"`
	// YYYY-MM
	KnowledgeCutoff *string        `json:"knowledge_cutoff,omitempty"`
	Channels        *ChannelConfig `json:"channel_config,omitempty"`
	// by sort key, usually their name
	Tools map[string]ToolNamespace `json:"tools,omitempty"`
}

// ChannelConfig lists the channels of the model.
type ChannelConfig struct {
	Valid    []string `json:"valid_channels"`
	Required bool     `json:"channel_required"` // every message must be in one
}

type DeveloperContent struct {
	Instructions *string                  `json:"instructions,omitempty"`
	Tools        map[string]ToolNamespace `json:"tools,omitempty"`
	// ResponseFormats is the section of that name. It is last: with another format the tools before
	// it are still those of a cached prompt.
	ResponseFormats string `json:"response_formats,omitempty"`
}

// FunctionsNamespace is the namespace of a developer's functions.
const FunctionsNamespace = "functions"

type ToolNamespace struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Tools       []ToolDescription `json:"tools"`
}

// ToolDescription offers one tool. Parameters is a JSON schema in its original key order; empty or
// null without parameters.
type ToolDescription struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`

	resolveRefs bool // resolve references and the like before rendering
}

// Functions is the namespace of a developer message for these functions, ready for
// DeveloperContent.Tools; nil without functions. Their schemas are resolved (resolve.go).
func Functions(tools []ToolDescription) map[string]ToolNamespace {
	if len(tools) == 0 {
		return nil
	}
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].resolveRefs = true
	}
	return map[string]ToolNamespace{FunctionsNamespace: {Name: FunctionsNamespace, Tools: tools}}
}

// The values of the released models' training.
const (
	DefaultIdentity        = "You are ChatGPT, a large language model trained by OpenAI."
	DefaultKnowledgeCutoff = "2024-06"
)

// DefaultSystem is the system content of the released models' training. The effort is low, medium
// or high, ignoring case (anything else is medium); an empty date is left out.
func DefaultSystem(effort, date string) SystemContent {
	s := SystemContent{
		ModelIdentity:   new(DefaultIdentity),
		ReasoningEffort: EffortMedium,
		KnowledgeCutoff: new(DefaultKnowledgeCutoff),
		Channels: &ChannelConfig{Valid: []string{ChannelAnalysis, ChannelCommentary,
			ChannelFinal}, Required: true},
	}
	if e, ok := ParseEffort(effort); ok {
		s.ReasoningEffort = e
	}
	if date != "" {
		s.ConversationStartDate = &date
	}
	return s
}

// ParseEffort reads low, medium or high, ignoring case.
func ParseEffort(s string) (Effort, bool) {
	for _, e := range []Effort{EffortLow, EffortMedium, EffortHigh} {
		if strings.EqualFold(s, string(e)) {
			return e, true
		}
	}
	return EffortNone, false
}

//go:embed builtin.json
var builtinText []byte

// builtins are the tools of the models' training, with the wording of the training.
var builtins = sync.OnceValue(func() (tools struct{ Python, Browser ToolNamespace }) {
	if err := json.Unmarshal(builtinText, &tools); err != nil {
		panic("harmony: builtin.json: " + err.Error()) // every test of a tool reads it
	}
	return tools
})

// BuiltinPython offers the stateful Python tool. A call's content is code, not JSON, and its
// recipient is python.
func BuiltinPython() ToolNamespace { return builtins().Python }

// BuiltinBrowser offers search, open and find. Recipients are browser.search, browser.open and
// browser.find.
func BuiltinBrowser() ToolNamespace { return builtins().Browser }
