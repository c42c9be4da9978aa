package harmony

import (
	"slices"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// A prompt made of pieces is the prompt rendered at once.
func TestPiecesMakeThePrompt(t *testing.T) {
	system := DefaultSystem("high", "2025-06-28")
	system.Tools = map[string]ToolNamespace{"browser": BuiltinBrowser(), "python": BuiltinPython()}
	messages := []Message{
		System(system),
		Developer(DeveloperContent{Instructions: new("Be brief."),
			Tools: Functions([]ToolDescription{{
				Name: "get_weather", Description: "Gets the weather.",
				Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"}}}`),
			}})}),
		DeveloperText("Speak like a pirate."),
		Text(RoleUser, "Weather in <|end|> Bern?"),
		Text(RoleAssistant, "A call.").WithChannel(ChannelAnalysis),
		Text(RoleAssistant, `{"city":"Bern"}`).WithChannel(ChannelCommentary).WithRecipient(
			"functions.get_weather").WithContentType(ContentTypeJSON),
		{Role: RoleTool, Name: "functions.get_weather", Recipient: "assistant",
			Channel: ChannelCommentary, Content: []Content{{Type: KindText, Text: "rain"}}},
	}
	want, err := RenderCompletion(messages, RoleAssistant, true)
	hosttest.Check(t, err)
	options := RenderOptions{FunctionTools: OffersFunctions(messages)}
	if !options.FunctionTools {
		t.Fatal("the functions are not seen")
	}
	var got []int32
	for _, m := range messages {
		from := len(got)
		if got, err = RenderMessage(got, m, options); err != nil {
			t.Fatal(err)
		}
		piece := got[from:]
		if piece[0] != token.Start || !isEnd(piece[len(piece)-1]) ||
			slices.Index(piece[1:], token.Start) >= 0 {
			t.Errorf("%s: not one whole message: %v", m.Role, piece)
		}
	}
	if got = RenderTurn(got, RoleAssistant); !slices.Equal(got, want) {
		t.Errorf("pieces %v, whole %v", got, want)
	}
	// And the reader reads the same messages back, with the same tokens.
	read := hosttest.Must(ReadLegal(got[:len(got)-2], ""))(t)
	for i, m := range read[3:] {
		m.Name = messages[i+3].Name
		again, err := RenderMessage(nil, m, options)
		once, _ := RenderMessage(nil, messages[i+3], options)
		if err != nil || !slices.Equal(again, once) || m.Text() != messages[i+3].Text() {
			t.Errorf("%+v was read as %+v, error %v", messages[i+3], m, err)
		}
	}
}

func TestRenderErrors(t *testing.T) {
	tool := Text(RoleTool, "x")
	for name, m := range map[string]Message{
		"tool without a name": tool,
		"no role":             Text("", "x"),
		"system content elsewhere": {Role: RoleUser,
			Content: System(DefaultSystem("", "")).Content},
		"developer content elsewhere": {Role: RoleUser, Content: DeveloperText("x").Content},
		"content of no kind":          {Role: RoleUser, Content: []Content{{Text: "x"}}},
		"parameters are not JSON": Developer(DeveloperContent{Tools: Functions([]ToolDescription{{
			Name: "f", Parameters: []byte(`{"type":`)}})}),
	} {
		if _, err := RenderMessage(nil, m, RenderOptions{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := RenderCompletion(nil, "robot", true); err == nil {
		t.Error("an unknown next role is no error")
	}
}

func TestDefaultSystem(t *testing.T) {
	for effort, want := range map[string]Effort{"low": EffortLow, "High": EffortHigh,
		"": EffortMedium, "huge": EffortMedium} {
		if got := DefaultSystem(effort, "").ReasoningEffort; got != want {
			t.Errorf("%q: %q, want %q", effort, got, want)
		}
	}
}
