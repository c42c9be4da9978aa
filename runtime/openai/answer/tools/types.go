// What happens with each type of tool that makers' clients send: it runs here, the client runs it,
// or it is refused.
//
// What must stay true: no tool of a request vanishes, since no client reads a header and the model
// would answer as if it had searched. Only a search or an interpreter that this server lacks may
// go, if functions stay: Codex always sends one. The answer's list of tools then lacks it.

package tools

import (
	"regexp"

	"github.com/ossrun/ossrun/runtime/openai/fields"
)

// handling is one of three.
type handling struct {
	runs    string // the kind of tool that runs it here
	offered bool   // to the client, which runs it
	refused string // advice
}

const offerFunction = "offer it as a function or a custom tool"

// handlings are by type, without the date of a version.
var handlings = map[string]handling{
	"function":  {offered: true},
	"custom":    {offered: true},
	"namespace": {offered: true},

	"web_search":         {runs: Browser},
	"web_search_preview": {runs: Browser},
	"code_interpreter":   {runs: Python},
	"mcp":                {runs: MCP},

	"apply_patch": {refused: offerFunction},
	"local_shell": {refused: offerFunction},
	"shell":       {refused: offerFunction},
	"tool_search": {refused: "offer the tools themselves"},
	"file_search": {refused: "it has no vector stores; offer a function or an MCP server that " +
		"searches"},
	"image_generation":          {refused: "gpt-oss writes text only"},
	"computer":                  {refused: "gpt-oss reads no pictures"},
	"computer_use_preview":      {refused: "gpt-oss reads no pictures"},
	"programmatic_tool_calling": {refused: "offer code_interpreter"},

	// Anthropic's
	"web_fetch":      {runs: Browser},
	"code_execution": {runs: Python},
	"bash":           {refused: offerFunction},
	"text_editor":    {refused: offerFunction},
	"memory":         {refused: offerFunction},
}

// version ends the types of makers that date their tools: web_search_20250305,
// web_search_preview_2025_03_11.
var version = regexp.MustCompile(`_20\d\d_?[01]\d_?[0-3]\d$`)

// handlingOf refuses unknown types, and dates of types that have none.
func handlingOf(typ string) handling {
	if h, is := handlings[version.ReplaceAllString(typ, "")]; is && (!h.offered ||
		!version.MatchString(typ)) {
		return h
	}
	return handling{refused: offerFunction}
}

// refuse refuses the tool t of a type that is neither run nor offered; one of an item is history,
// which refuses nothing.
func (offer *Offer) refuse(t *fields.Object, typ string, h handling) {
	if offer.history {
		offer.Ignored = append(offer.Ignored, typ)
		return
	}
	t.Get("type").Unsupported("a tool of type "+fields.Brief(typ), h.refused)
}

// Lack refuses a tool on a route that runs none. A search or an interpreter is skipped if there are
// functions.
func (offer *Offer) Lack(t *fields.Object, typ string) {
	h := handlingOf(typ)
	switch {
	case (Requested{Kind: h.runs}).mayGo(len(offer.Functions)) && h.runs != "":
		offer.Ignored = append(offer.Ignored, typ)
		return
	case h.runs != "":
		h.refused = "ask /v1/responses, which runs it"
	}
	offer.refuse(t, typ, h)
}
