// /v1/responses: the objects and events, field for field as clients decode them.
//
// Usage is complete or null: Codex refuses a response whose usage lacks a total. Lists are never
// null.

package responses

import (
	"encoding/json"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/session"
)

type response struct {
	ID        string `json:"id"`
	Object    string `json:"object"` // response
	CreatedAt int64  `json:"created_at"`
	// queued, in_progress, completed, incomplete, failed, cancelled
	Status       string `json:"status"`
	Background   bool   `json:"background"`
	Conversation *struct {
		ID string `json:"id"`
	} `json:"conversation"`
	CompletedAt        *int64            `json:"completed_at"`
	Error              *responseError    `json:"error"`
	IncompleteDetails  *incompleteReason `json:"incomplete_details"`
	Instructions       *string           `json:"instructions"`
	MaxOutputTokens    *int              `json:"max_output_tokens"`
	MaxToolCalls       *int              `json:"max_tool_calls"`
	Model              string            `json:"model"`
	Output             []outputItem      `json:"output"`
	ParallelToolCalls  bool              `json:"parallel_tool_calls"`
	PreviousResponseID *string           `json:"previous_response_id"`
	PromptCacheKey     *string           `json:"prompt_cache_key"`
	Reasoning          reasoningSettings `json:"reasoning"`
	SafetyIdentifier   *string           `json:"safety_identifier"`
	ServiceTier        string            `json:"service_tier"`
	Store              bool              `json:"store"`
	Temperature        float32           `json:"temperature"`
	Text               textSettings      `json:"text"`
	ToolChoice         any               `json:"tool_choice"` // unchanged from the request
	Tools              []any             `json:"tools"`       // unchanged from the request
	TopLogprobs        int               `json:"top_logprobs"`
	TopP               float32           `json:"top_p"`
	PresencePenalty    float32           `json:"presence_penalty"`
	FrequencyPenalty   float32           `json:"frequency_penalty"`
	Truncation         string            `json:"truncation"`
	Usage              *responseUsage    `json:"usage"` // null before the end
	User               string            `json:"user,omitempty"`
	Metadata           json.RawMessage   `json:"metadata"`
	// vLLM's, with enable_response_messages: empty before the end
	InputMessages  []harmony.Message `json:"input_messages,omitzero"`
	OutputMessages []harmony.Message `json:"output_messages,omitzero"`
}

type responseError struct {
	Type    string `json:"type"` // not in OpenAI's document; Vercel's AI SDK wants it
	Code    string `json:"code"`
	Message string `json:"message"`
}

type incompleteReason struct {
	Reason string `json:"reason"`
}

type reasoningSettings struct {
	Effort  string  `json:"effort"`
	Summary *string `json:"summary"`
}

type textSettings struct {
	Format    request.TextFormat `json:"format"`
	Verbosity string             `json:"verbosity,omitempty"`
}

type responseUsage struct {
	InputTokens   int                  `json:"input_tokens"`
	InputDetails  inputDetails         `json:"input_tokens_details"`
	OutputTokens  int                  `json:"output_tokens"`
	OutputDetails answer.OutputDetails `json:"output_tokens_details"`
	TotalTokens   int                  `json:"total_tokens"`
}

type inputDetails struct {
	CachedTokens int `json:"cached_tokens"`
	// a charge of OpenAI's; this server charges nothing
	CacheWriteTokens int `json:"cache_write_tokens"`
}

func wireResponseUsage(u session.Usage) *responseUsage {
	return &responseUsage{InputTokens: u.Prompt, InputDetails: inputDetails{CachedTokens: u.Cached},
		OutputTokens:  u.Completion,
		OutputDetails: answer.OutputDetails{ReasoningTokens: u.Reasoning},
		TotalTokens:   u.Prompt + u.Completion}
}

// outputItem is a *reasoningItem, *messageItem or *callItem, or an item of
// builtin_items.go or client_items.go.
type outputItem interface{ head() *itemHead }

// itemHead is the common start of all items.
type itemHead struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

func (h *itemHead) head() *itemHead { return h }

type reasoningItem struct {
	itemHead
	Summary   []contentPart `json:"summary"`
	Content   []contentPart `json:"content"`
	Encrypted string        `json:"encrypted_content,omitempty"`
	Status    string        `json:"status"`
}

type messageItem struct {
	itemHead
	Role    string        `json:"role"` // assistant
	Phase   string        `json:"phase"`
	Content []contentPart `json:"content"`
	Status  string        `json:"status"`
}

// callItem is a client's call: a function_call with its arguments, or a custom_tool_call with its
// input.
type callItem struct {
	itemHead
	CallID    string  `json:"call_id"`
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	Arguments *string `json:"arguments,omitempty"`
	Input     *string `json:"input,omitempty"`
	Status    string  `json:"status"`
}

// compactionItem replaces the conversation that it summarizes.
type compactionItem struct {
	itemHead
	Encrypted string `json:"encrypted_content"`
}

// contentPart is output_text, with its two lists, or reasoning_text or summary_text, without.
type contentPart struct {
	Type        string                 `json:"type"`
	Text        string                 `json:"text"`
	Annotations *[]annotation          `json:"annotations,omitempty"`
	Logprobs    *[]answer.TokenLogprob `json:"logprobs,omitempty"`
}

// annotation names the source of a place in the text; the indexes count characters.
type annotation struct {
	Type       string `json:"type"` // url_citation
	StartIndex int    `json:"start_index"`
	EndIndex   int    `json:"end_index"`
	URL        string `json:"url"`
	Title      string `json:"title"`
}

func outputText(text string, logprobs []answer.TokenLogprob) contentPart {
	if logprobs == nil {
		logprobs = []answer.TokenLogprob{}
	}
	return contentPart{Type: "output_text", Text: text, Annotations: &[]annotation{},
		Logprobs: &logprobs}
}

// streamEvent is one event of the stream; fields of other types are nil or "".
type streamEvent struct {
	Type         string       `json:"type"`
	Sequence     int          `json:"sequence_number"`
	Response     *response    `json:"response,omitempty"`
	ItemID       string       `json:"item_id,omitempty"`
	OutputIndex  *int         `json:"output_index,omitempty"`
	ContentIndex *int         `json:"content_index,omitempty"` // an item has one part, the first
	SummaryIndex *int         `json:"summary_index,omitempty"` // and one of the two lists of parts
	Item         outputItem   `json:"item,omitempty"`
	Part         *contentPart `json:"part,omitempty"`
	Delta        *string      `json:"delta,omitempty"`
	Text         *string      `json:"text,omitempty"`
	Name         string       `json:"name,omitempty"`
	Arguments    *string      `json:"arguments,omitempty"`
	Input        *string      `json:"input,omitempty"`
	Code         *string      `json:"code,omitempty"`
	// of response.output_text.annotation.added
	AnnotationIndex *int                   `json:"annotation_index,omitempty"`
	Annotation      *annotation            `json:"annotation,omitempty"`
	Logprobs        *[]answer.TokenLogprob `json:"logprobs,omitempty"` // not null for output_text
}
