// What happens with each type of tool that makers' clients send: it runs here, the client runs it,
// or it is refused.
//
// What must stay true: no tool of a request vanishes, since no client reads a header and the model
// would answer as if it had searched. Only a search or an interpreter that this server lacks may
// go, if functions stay: Codex always sends one. The answer's list of tools then lacks it.

package tools

import (
	"cmp"
	"regexp"

	"github.com/ossrun/ossrun/runtime/openai/fields"
)

// APIs whose answers have calls of the makers' own types.
const (
	Responses = "/v1/responses"
	Messages  = "/v1/messages"
)

// handling is one of four.
type handling struct {
	runs    string // the kind of tool that runs it here
	offered bool   // to the client, which runs it
	// as is the function that the client runs; none: its deferred tools are all offered
	as      func(t *fields.Object, typ string) Function
	refused string // advice
	api     string // the only one that has it; "": several
}

const (
	offerFunction = "offer it as a function or a custom tool"
	webFetch      = "web_fetch"
	noPictures    = "gpt-oss reads no pictures"
)

// handlings are by type, without the date of a version.
var handlings = map[string]handling{
	"function":  {offered: true},
	"custom":    {offered: true},
	"namespace": {offered: true},

	"web_search":         {runs: Browser},
	"web_search_preview": {runs: Browser},
	"code_interpreter":   {runs: Python},
	MCP:                  {runs: MCP},

	ApplyPatch:    {as: patchTool, api: Responses},
	"local_shell": {as: disguised, api: Responses},
	"shell":       {as: shellTool, api: Responses},
	toolSearch:    {as: searchTool, api: Responses},
	"file_search": {refused: "it has no vector stores; offer a function or an MCP server that " +
		"searches"},
	"image_generation":          {refused: "gpt-oss writes text only"},
	"computer":                  {refused: noPictures},
	"computer_use_preview":      {refused: noPictures},
	"programmatic_tool_calling": {refused: "offer code_interpreter"},

	// Anthropic's
	webFetch:                 {runs: Browser},
	"code_execution":         {runs: Python},
	"bash":                   {as: named, api: Messages},
	"text_editor":            {as: editorTool, api: Messages},
	"memory":                 {as: named, api: Messages},
	"tool_search_tool_bm25":  {as: allDeferred, api: Messages},
	"tool_search_tool_regex": {as: allDeferred, api: Messages},
	"browser_toolset":        {refused: "offer web_search and web_fetch"},
	"computer_toolset":       {refused: noPictures},
	"advisor":                {refused: "there is one model"},
	"mcp_toolset":            {refused: "name the server in mcp.json and ask /v1/responses"},
}

// version ends the types of makers that date their tools: web_search_20250305,
// web_search_preview_2025_03_11.
var version = regexp.MustCompile(`_20\d\d_?[01]\d_?[0-3]\d$`)

func withoutDate(typ string) string { return version.ReplaceAllString(typ, "") }

// handlingOf refuses unknown types, and dates of types that have none.
func handlingOf(typ string) handling {
	if h, is := handlings[withoutDate(typ)]; is && (!h.offered || !version.MatchString(typ)) {
		return h
	}
	return handling{refused: offerFunction}
}

// readTyped reads a tool that is no function of the client's own.
func (offer *Offer) readTyped(t *fields.Object, typ string) {
	h := handlingOf(typ)
	switch {
	case h.as != nil && (h.api == offer.api || offer.history):
		f := h.as(t, typ)
		if f.Name != "" {
			offer.Functions = append(offer.Functions, f)
		}
		offer.finds = offer.finds || f.Name == "" || typ == toolSearch
		offer.findsAll = offer.findsAll || f.Name == ""
	case h.runs == MCP && offer.api == Messages:
		h.refused = "ask /v1/responses, which runs it"
		offer.refuse(t, typ, h)
	case h.runs == "":
		if h.refused = cmp.Or(h.refused, offerFunction); h.api != "" {
			h.refused = "ask " + h.api
		}
		offer.refuse(t, typ, h)
	}
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
