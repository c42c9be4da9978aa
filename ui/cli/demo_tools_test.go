// The demo model, its own tools and a function, end to end: in the chat and through the port.

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

const (
	askSum      = "What is 17 * 23?"
	askWeather  = "What is the weather in Paris?"
	getWeather  = `{"type":"object","properties":{"city":{"type":"string","description":"The city name"}},"required":["city"]}`
	weatherSays = `{"temperature": 18, "sky": "cloudy"}`
)

func needsSandbox(t *testing.T) {
	t.Helper()
	hosttest.Program(t, "bwrap")
}

// TestDemoUsesToolsInTheChat asks the model for a sum, which its python computes, and for the
// weather, which is a function of an MCP server.
func TestDemoUsesToolsInTheChat(t *testing.T) {
	needsSandbox(t)
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
		"XDG_RUNTIME_DIR"} {
		t.Setenv(name, t.TempDir())
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "get", Version: "1"}, nil)
	var asked []string
	server.AddTool(&sdk.Tool{Name: "weather", Description: "Get the current weather in a given city",
		InputSchema: json.RawMessage(getWeather)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			asked = append(asked, string(r.Params.Arguments))
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{
				Text: weatherSays}}}, nil
		})
	port := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server {
		return server
	}, nil))
	defer port.Close()
	defer port.CloseClientConnections()
	config := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(config, fmt.Appendf(nil,
		`{"mcpServers":{"get":{"type":"http","url":%q}}}`, port.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	chat := func(question string, flags ...string) string {
		t.Helper()
		code, out, told := runHere(t.Context(), append(append([]string{"chat", "--model", "demo",
			"--device", "cpu", "--temperature", "0", "--alone"}, flags...), question)...)
		if code != exitOK {
			t.Fatalf("%s: %d, %s", question, code, told)
		}
		return out
	}
	if got := chat(askSum, "--tools", "python"); !strings.Contains(got, "17 * 23 = 391") {
		t.Errorf("%s: %q", askSum, got)
	}
	got := chat(askWeather, "--mcp-config", config)
	if !strings.Contains(got, "Paris") || !strings.Contains(got, "18") ||
		!strings.Contains(got, "cloudy") || len(asked) != 1 || asked[0] != `{"city":"Paris"}` {
		t.Errorf("%s: %q, after %q", askWeather, got, asked)
	}
}

// TestDemoUsesToolsAtThePort does the same with requests: the server runs python, the client its
// own function.
func TestDemoUsesToolsAtThePort(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	s := serveDemo(t, "--tools", "python")
	var ran struct {
		Output []struct {
			Type, Code string
			Content    []struct{ Text string }
		}
	}
	s.post("/v1/responses", fmt.Sprintf(`{"model":"demo","input":%q,"temperature":0,"tools":[
		{"type":"code_interpreter","container":{"type":"auto"}}]}`, askSum), &ran)
	code, said := "", ""
	for _, item := range ran.Output {
		switch item.Type {
		case "code_interpreter_call":
			code += item.Code
		case "message":
			said += item.Content[0].Text
		}
	}
	if code != "print(17 * 23)" || said != "17 * 23 = 391" {
		t.Errorf("%s: ran %q, said %q", askSum, code, said)
	}

	tool := fmt.Sprintf(`[{"type":"function","function":{"name":"get_weather",
		"description":"Get the current weather in a given city","parameters":%s}}]`, getWeather)
	var first, second chatReply
	question := fmt.Sprintf(`{"role":"user","content":%q}`, askWeather)
	s.post("/v1/chat/completions", fmt.Sprintf(`{"model":"demo","temperature":0,"tools":%s,
		"messages":[%s]}`, tool, question), &first)
	m := first.Choices[0].Message
	if first.Choices[0].Finish != "tool_calls" || len(m.ToolCalls) != 1 ||
		m.ToolCalls[0].Function.Name != "get_weather" ||
		m.ToolCalls[0].Function.Arguments != `{"city":"Paris"}` {
		t.Fatalf("%s: %+v", askWeather, first)
	}
	s.post("/v1/chat/completions", fmt.Sprintf(`{"model":"demo","temperature":0,"tools":%s,
		"messages":[%s,{"role":"assistant","tool_calls":[{"id":%q,"type":"function","function":
		{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}}]},
		{"role":"tool","tool_call_id":%q,"content":%q}]}`, tool, question, m.ToolCalls[0].ID,
		m.ToolCalls[0].ID, weatherSays), &second)
	for _, want := range []string{"Paris", "18", "cloudy"} {
		if got := second.Choices[0].Message.Content; !strings.Contains(got, want) {
			t.Errorf("the answer to the result has no %q: %q", want, got)
		}
	}
}
