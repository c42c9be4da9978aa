// openai-go against known turns; the script is in the prompt (scripttest/script.go).

package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

const (
	model = "gpt-oss:20b"
	say   = "[[think They greet.]] [[say Hello to you.]]"
	call  = `[[think A tool knows.]] [[call get_weather {"city":"Paris"}]] [[think So.]] [[say Sunny.]]`
)

var parameters = map[string]any{"type": "object", "properties": map[string]any{
	"city": map[string]any{"type": "string"}}, "required": []string{"city"}, "additionalProperties": false}

func client() openai.Client {
	return openai.NewClient(option.WithBaseURL(os.Getenv("BASE_URL")), option.WithAPIKey(os.Getenv("API_KEY")),
		option.WithMaxRetries(0))
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func chatOf(messages ...openai.ChatCompletionMessageParamUnion) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: model, Messages: messages,
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: "get_weather", Parameters: parameters})}}
}

func TestChat(t *testing.T) {
	c, ctx := client(), t.Context()
	r := must[*openai.ChatCompletion](t)(c.Chat.Completions.New(ctx, chatOf(openai.UserMessage(say))))
	if r.Choices[0].Message.Content != "Hello to you." || r.Usage.TotalTokens != r.Usage.PromptTokens+r.Usage.CompletionTokens {
		t.Error(r.RawJSON())
	}
	p := chatOf(openai.UserMessage(say))
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	stream, acc := c.Chat.Completions.NewStreaming(ctx, p), openai.ChatCompletionAccumulator{}
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Fatal("a chunk does not belong to the stream")
		}
	}
	if err := stream.Err(); err != nil || acc.Choices[0].Message.Content != "Hello to you." || acc.Usage.TotalTokens == 0 {
		t.Error(err, acc)
	}
}

func TestChatTools(t *testing.T) {
	c, ctx := client(), t.Context()
	for _, streamed := range []bool{false, true} {
		p := chatOf(openai.UserMessage(call))
		var last openai.ChatCompletionMessage
		for range 2 {
			if streamed {
				s, acc := c.Chat.Completions.NewStreaming(ctx, p), openai.ChatCompletionAccumulator{}
				for s.Next() {
					acc.AddChunk(s.Current())
				}
				if s.Err() != nil {
					t.Fatal(s.Err())
				}
				last = acc.Choices[0].Message
			} else {
				last = must[*openai.ChatCompletion](t)(c.Chat.Completions.New(ctx, p)).Choices[0].Message
			}
			p.Messages = append(p.Messages, last.ToParam())
			for _, call := range last.ToolCalls {
				if call.Function.Arguments != `{"city":"Paris"}` {
					t.Error(call.RawJSON())
				}
				p.Messages = append(p.Messages, openai.ToolMessage("sunny", call.ID))
			}
		}
		if last.Content != "Sunny." || len(p.Messages) != 4 {
			t.Errorf("%q after %d messages", last.Content, len(p.Messages))
		}
	}
}

func TestChatSchema(t *testing.T) {
	c, p := client(), chatOf(openai.UserMessage(`[[say {"city":"Rome"}]]`))
	p.Tools = nil
	p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
		Name: "place", Schema: parameters, Strict: openai.Bool(true)}}
	var place struct{ City string }
	r := must[*openai.ChatCompletion](t)(c.Chat.Completions.New(t.Context(), p))
	if err := json.Unmarshal([]byte(r.Choices[0].Message.Content), &place); err != nil || place.City != "Rome" {
		t.Error(err, place)
	}
}

func TestFaults(t *testing.T) {
	c, ctx := client(), t.Context()
	p := chatOf(openai.UserMessage("x"))
	p.Model = "none"
	_, err := c.Chat.Completions.New(ctx, p)
	if e := (*openai.Error)(nil); !errors.As(err, &e) || e.StatusCode != 404 || e.Code != "model_not_found" {
		t.Error(err)
	}
	s := c.Chat.Completions.NewStreaming(ctx, chatOf(openai.UserMessage("[[think x]] [[fail]]")))
	for s.Next() {
	}
	if s.Err() == nil {
		t.Error("a stream that failed has no error")
	}
}

func asking(input string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: model,
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(input)},
		Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "get_weather", Parameters: parameters,
			Strict: openai.Bool(true)}}}}
}

func checkUsage(t *testing.T, u responses.ResponseUsage) {
	t.Helper()
	if u.TotalTokens == 0 || u.TotalTokens != u.InputTokens+u.OutputTokens || u.InputTokensDetails.CachedTokens > u.InputTokens ||
		u.OutputTokensDetails.ReasoningTokens > u.OutputTokens {
		t.Error(u.RawJSON())
	}
}

func TestResponses(t *testing.T) {
	c, ctx := client(), t.Context()
	r := must[*responses.Response](t)(c.Responses.New(ctx, asking(say)))
	if r.OutputText() != "Hello to you." || len(r.Output) != 2 || r.Output[0].Type != "reasoning" {
		t.Error(r.RawJSON())
	}
	checkUsage(t, r.Usage)
	again := must[*responses.Response](t)(c.Responses.Get(ctx, r.ID, responses.ResponseGetParams{}))
	if again.OutputText() != r.OutputText() {
		t.Error(again.RawJSON())
	}
	if err := c.Responses.Delete(ctx, r.ID); err != nil {
		t.Error(err)
	}
	s, text, last := c.Responses.NewStreaming(ctx, asking(say)), "", ""
	for s.Next() {
		e := s.Current()
		switch v := e.AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text += v.Delta
		case responses.ResponseCompletedEvent:
			checkUsage(t, v.Response.Usage)
		}
		last = e.Type
	}
	if s.Err() != nil || text != "Hello to you." || last != "response.completed" {
		t.Error(s.Err(), text, last)
	}
}

func TestResponsesTools(t *testing.T) {
	c, ctx := client(), t.Context()
	talk := must[*conversations.Conversation](t)(c.Conversations.New(ctx, conversations.ConversationNewParams{}))
	for _, inTalk := range []bool{false, true} {
		p := asking(call)
		if inTalk {
			p.Conversation.OfString = openai.String(talk.ID)
		}
		r := must[*responses.Response](t)(c.Responses.New(ctx, p))
		called := r.Output[len(r.Output)-1]
		if called.Type != "function_call" || called.Name != "get_weather" {
			t.Fatal(r.RawJSON())
		}
		result := responses.ResponseInputItemParamOfFunctionCallOutput("sunny")
		result.OfFunctionCallOutput.CallID = openai.String(called.CallID)
		p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{result}}
		if !inTalk {
			p.PreviousResponseID = openai.String(r.ID)
		}
		if r = must[*responses.Response](t)(c.Responses.New(ctx, p)); r.OutputText() != "Sunny." {
			t.Error(r.RawJSON())
		}
	}
}

const (
	many = `[[call browser.search {"query":"ossrun"}]] [[call python print(6*7)]] [[call sums_add {"a":2,"b":3}]] ` +
		"[[call apply_patch *** Begin\n+x {\n*** End]] [[say It is so.]]"
	patch = "*** Begin\n+x {\n*** End"
	sum   = `{"a":2,"b":3}`
)

func sums(approval string) responses.ToolUnionParam {
	return responses.ToolUnionParam{OfMcp: &responses.ToolMcpParam{ServerLabel: "sums",
		ServerURL:       openai.String("https://example.org/"),
		RequireApproval: responses.ToolMcpRequireApprovalUnionParam{OfMcpToolApprovalSetting: openai.String(approval)}}}
}

// followed asks with a stream, and returns the last response and what the deltas of each kind say.
func followed(t *testing.T, c openai.Client, p responses.ResponseNewParams) (r *responses.Response, said map[string]string) {
	t.Helper()
	s := c.Responses.NewStreaming(t.Context(), p)
	said = map[string]string{}
	for s.Next() {
		switch e := s.Current().AsAny().(type) {
		case responses.ResponseCustomToolCallInputDeltaEvent:
			said[e.ItemID] += e.Delta
		case responses.ResponseCodeInterpreterCallCodeDeltaEvent:
			said[e.ItemID] += e.Delta
		case responses.ResponseMcpCallArgumentsDeltaEvent:
			said[e.ItemID] += e.Delta
		case responses.ResponseCompletedEvent:
			r = &e.Response
		}
	}
	if s.Err() != nil || r == nil {
		t.Fatal(s.Err())
	}
	return r, said
}

func TestResponsesServerTools(t *testing.T) {
	c, p := client(), asking(many)
	p.Tools = []responses.ToolUnionParam{responses.ToolParamOfWebSearch(responses.WebSearchToolTypeWebSearch), {
		OfCodeInterpreter: &responses.ToolCodeInterpreterParam{Container: responses.ToolCodeInterpreterContainerUnionParam{
			OfCodeInterpreterToolAuto: &responses.ToolCodeInterpreterContainerCodeInterpreterContainerAutoParam{}}}},
		sums("never"), responses.ToolParamOfCustom("apply_patch")}
	p.Include = []responses.ResponseIncludable{responses.ResponseIncludableCodeInterpreterCallOutputs}
	for _, streamed := range []bool{false, true} {
		var r *responses.Response
		var said map[string]string
		if streamed {
			r, said = followed(t, c, p)
		} else {
			r = must[*responses.Response](t)(c.Responses.New(t.Context(), p))
		}
		var got []string
		callID := ""
		told := func(id, whole string) {
			if streamed && said[id] != whole {
				t.Errorf("the deltas say %q, the item %q", said[id], whole)
			}
		}
		for _, item := range r.Output {
			switch v := item.AsAny().(type) {
			case responses.ResponseOutputItemMcpListTools:
				got = append(got, "lists "+v.Tools[0].Name)
			case responses.ResponseFunctionWebSearch:
				got = append(got, "searches "+v.Action.AsSearch().Query)
			case responses.ResponseCodeInterpreterToolCall:
				got = append(got, v.Outputs[0].AsLogs().Logs)
				told(v.ID, v.Code)
			case responses.ResponseOutputItemMcpCall:
				got = append(got, v.Arguments+" is "+v.Output)
				told(v.ID, v.Arguments)
			case responses.ResponseCustomToolCall:
				got, callID = append(got, v.Input), v.CallID
				told(v.ID, v.Input)
			}
		}
		want := []string{"lists add", "searches ossrun", "ran: print(6*7)", sum + " is 5", patch}
		if !slices.Equal(got, want) {
			t.Fatalf("%q\n%s", got, r.RawJSON())
		}
		then := p
		then.PreviousResponseID = openai.String(r.ID)
		then.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{{
			OfCustomToolCallOutput: &responses.ResponseCustomToolCallOutputParam{CallID: callID,
				Output: responses.ResponseCustomToolCallOutputOutputUnionParam{OfString: openai.String("ok")}}}}}
		if r = must[*responses.Response](t)(c.Responses.New(t.Context(), then)); r.OutputText() != "It is so." {
			t.Error(r.RawJSON())
		}
	}
}

func TestResponsesApproval(t *testing.T) {
	c := client()
	for _, streamed := range []bool{false, true} {
		ask := func(p responses.ResponseNewParams) *responses.Response {
			if streamed {
				r, _ := followed(t, c, p)
				return r
			}
			return must[*responses.Response](t)(c.Responses.New(t.Context(), p))
		}
		p := asking("[[call sums_add " + sum + "]] [[say Five.]]")
		p.Tools = []responses.ToolUnionParam{sums("always")}
		first := ask(p)
		request, ok := first.Output[len(first.Output)-1].AsAny().(responses.ResponseOutputItemMcpApprovalRequest)
		if !ok || request.Name != "add" || request.Arguments != sum {
			t.Fatal(first.RawJSON())
		}
		for _, approve := range []bool{false, true} {
			p.PreviousResponseID = openai.String(first.ID)
			p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
				responses.ResponseInputItemParamOfMcpApprovalResponse(request.ID, approve)}}
			r := ask(p)
			ran := false
			for _, item := range r.Output {
				if v, ok := item.AsAny().(responses.ResponseOutputItemMcpCall); ok {
					ran = v.Output == "5" && v.ApprovalRequestID == request.ID
				}
			}
			if ran != approve || r.OutputText() != "Five." {
				t.Error(approve, streamed, r.RawJSON())
			}
		}
	}
}

func TestBackground(t *testing.T) {
	c, ctx := client(), t.Context()
	p := asking("[[slow 10ms]] [[say One two three four five six.]]")
	p.Background = openai.Bool(true)
	s := c.Responses.NewStreaming(ctx, p)
	id, number, text := "", int64(-1), ""
	for s.Next() && text == "" {
		e := s.Current()
		if e.Type == "response.created" {
			id = e.Response.ID
		}
		if v, ok := e.AsAny().(responses.ResponseTextDeltaEvent); ok {
			text += v.Delta
		}
		number = e.SequenceNumber
	}
	s.Close()
	rest := c.Responses.GetStreaming(ctx, id, responses.ResponseGetParams{StartingAfter: openai.Int(number)},
		option.WithQuery("stream", "true")) // the package puts it into a body, which a GET has not
	for rest.Next() {
		e := rest.Current()
		if number++; e.SequenceNumber != number {
			t.Errorf("event %d has the number %d", number, e.SequenceNumber)
		}
		if v, ok := e.AsAny().(responses.ResponseTextDeltaEvent); ok {
			text += v.Delta
		}
	}
	if rest.Err() != nil || text != "One two three four five six." {
		t.Error(rest.Err(), text)
	}
	r := must[*responses.Response](t)(c.Responses.New(ctx, p))
	for r.Status != "completed" {
		time.Sleep(10 * time.Millisecond)
		r = must[*responses.Response](t)(c.Responses.Get(ctx, r.ID, responses.ResponseGetParams{}))
	}
	r = must[*responses.Response](t)(c.Responses.New(ctx, p))
	if r = must[*responses.Response](t)(c.Responses.Cancel(ctx, r.ID)); r.Status != "cancelled" {
		t.Error(r.Status)
	}
}

func TestModels(t *testing.T) {
	c := client()
	pages, err := c.Models.List(context.Background())
	if err != nil || len(pages.Data) < 4 {
		t.Error(err)
	}
	if m, err := c.Models.Get(context.Background(), "openai/gpt-oss-20b"); err != nil || m.ID != "openai/gpt-oss-20b" {
		t.Error(err)
	}
}
