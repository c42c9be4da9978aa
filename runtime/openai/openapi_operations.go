// What the port honours, as a table: every route with its parameters. openapi.go makes OpenAPI's
// document and a page of it.
//
// What must stay true: openapi_test.go compares the table with routes() in both directions, and
// each field of a body with what the route does: a wrong type is refused by its name, and a right
// value is not ignored.

package openai

import "slices"

// operation is a route with a method.
type operation struct {
	route, summary string
	body           []string // fields, as fieldSchema reads them
	query          []string
	answer         string // the members that every answer has, with blanks between
	stream         string // the type of a streamed answer
}

const (
	sse    = "text/event-stream"
	ndjson = "application/x-ndjson"
)

// Fields of several routes.
var (
	samplingFields = []string{"temperature number 0 2", "top_p number 0 1", "min_p number 0 1",
		"top_k integer -1", "seed integer", "presence_penalty number -2 2",
		"frequency_penalty number -2 2", "repetition_penalty number 0.01 100", "logit_bias object",
		"min_tokens integer 0", "ignore_eos boolean", "bad_words strings",
		"stop_token_ids integers", "stop text-or-strings"}
	formFields = []string{"guided_json any", "guided_regex string", "guided_choice strings",
		"guided_grammar string", "structured_outputs object", "detect_loops boolean",
		"model string", "stream boolean"}
	turnFields = []string{"max_reasoning_tokens integer -1", "reasoning_effort effort",
		"verbosity low|medium|high", "chat_template_kwargs object", "tools objects",
		"tool_choice any", "metadata object", "user any"}
	pageFields = []string{"after string", "limit integer 1 100", "order asc|desc"}
)

var operations = []operation{
	{route: "POST /v1/chat/completions", summary: "Answer a conversation", stream: sse,
		body: slices.Concat([]string{"messages! objects", "n integer 1 64", "max_tokens integer -1",
			"max_completion_tokens integer -1", "logprobs boolean", "top_logprobs integer 0 20",
			"response_format object", "stream_options object", "include_reasoning boolean",
			"parallel_tool_calls any", "return_token_ids boolean", "modalities strings",
			"prediction object"},
			turnFields, samplingFields, formFields),
		answer: "id object created model choices usage"},
	{route: "POST /v1/completions", summary: "Continue a text", stream: sse,
		body: slices.Concat([]string{"prompt! any", "n integer 1 64", "max_tokens integer 0",
			"echo boolean", "logprobs integer 0 20", "best_of integer 1", "response_format object",
			"stream_options object", "return_token_ids boolean", "allowed_token_ids integers",
			"return_tokens_as_token_ids boolean", "skip_special_tokens boolean",
			"truncate_prompt_tokens integer 1"}, samplingFields, formFields),
		answer: "id object created model choices usage"},
	{route: "POST /v1/responses", summary: "Make a response", stream: sse,
		body: slices.Concat([]string{"input any", "instructions string",
			"previous_response_id string", "conversation any", "store boolean",
			"background boolean", "include strings",
			"max_output_tokens integer -1", "max_tool_calls integer 1", "reasoning object",
			"text object", "parallel_tool_calls boolean", "truncation auto|disabled",
			"context_management objects",
			"top_logprobs integer 0 20", "prompt_cache_key string", "safety_identifier string"},
			turnFields, samplingFields, formFields),
		answer: "id object created_at status model output error usage"},
	{route: "GET /v1/responses/{id}", summary: "A stored response, or its events from a number on",
		query: []string{"stream boolean", "starting_after integer 0"}, stream: sse,
		answer: "id object status output"},
	{route: "DELETE /v1/responses/{id}", summary: "Delete a response", answer: "id object deleted"},
	{route: "POST /v1/responses/{id}/cancel", summary: "End a background response",
		answer: "id object status"},
	{route: "GET /v1/responses/{id}/input_items", summary: "What led to a response",
		query: pageFields, answer: "object data first_id last_id has_more"},
	{route: "POST /v1/responses/input_tokens", summary: "Count the tokens of a prompt",
		body:   []string{"input any", "model string", "instructions string", "tools objects"},
		answer: "object input_tokens"},
	{route: "POST /v1/responses/compact", summary: "Make a conversation shorter",
		body:   []string{"input any", "model string", "previous_response_id string"},
		answer: "id object output usage"},
	{route: "POST /v1/conversations", summary: "Begin a conversation",
		body: []string{"items objects", "metadata object"}, answer: "id object created_at"},
	{route: "GET /v1/conversations/{id}", summary: "A conversation",
		answer: "id object created_at metadata"},
	{route: "POST /v1/conversations/{id}", summary: "Change its metadata",
		body: []string{"metadata! object"}, answer: "id object created_at metadata"},
	{route: "DELETE /v1/conversations/{id}", summary: "Delete it", answer: "id object deleted"},
	{route: "GET /v1/conversations/{id}/items", summary: "Its items", query: pageFields,
		answer: "object data first_id last_id has_more"},
	{route: "POST /v1/conversations/{id}/items", summary: "Add items to it",
		body: []string{"items! objects"}, answer: "object data first_id last_id has_more"},
	{route: "GET /v1/conversations/{id}/items/{item}", summary: "One item", answer: "id type"},
	{route: "DELETE /v1/conversations/{id}/items/{item}", summary: "Delete an item", answer: "id"},
	{route: "GET /v1/models", summary: "The models", answer: "object data"},
	{route: "GET /v1/models/{id}", summary: "A model",
		answer: "id object created owned_by max_model_len context_length aliases"},

	{route: "POST /v1/messages", summary: "Answer a conversation, by Anthropic's API", stream: sse,
		body: []string{"messages! objects", "max_tokens! integer 1", "model string", "system any",
			"stream boolean", "stop_sequences strings", "temperature number 0 2",
			"top_p number 0 1", "top_k integer -1", "tools objects", "tool_choice object",
			"thinking object", "output_config object"},
		answer: "id type role model content stop_reason usage"},
	{route: "POST /v1/messages/count_tokens", summary: "Count the tokens of its prompt",
		body:   []string{"messages! objects", "model string", "system any", "tools objects"},
		answer: "input_tokens"},

	{route: "POST /api/chat", summary: "Answer a conversation, by Ollama's API", stream: ndjson,
		body: []string{"messages objects", "model! string", "stream boolean", "think any",
			"format any", "tools objects", "options object", "keep_alive any"},
		answer: "model created_at done"},
	{route: "POST /api/generate", summary: "Answer a prompt", stream: ndjson,
		body: []string{"prompt string", "system string", "raw boolean", "model! string",
			"stream boolean", "think any", "format any", "options object", "keep_alive any"},
		answer: "model created_at done"},
	{route: "GET /api/version", summary: "The version of Ollama's API", answer: "version"},
	{route: "GET /api/tags", summary: "The models, as Ollama lists them", answer: "models"},
	{route: "GET /api/ps", summary: "Those in memory", answer: "models"},
	{route: "POST /api/show", summary: "A model, as Ollama shows it",
		body: []string{"model! string"}, answer: "details model_info capabilities"},
	{route: "POST /api/pull", summary: "Succeeds for a model that is here", stream: ndjson,
		body: []string{"model! string", "stream boolean"}, answer: "status"},

	{route: "POST /tokenize", summary: "A text or a conversation as tokens",
		body: []string{"prompt string", "messages objects", "tools any", "model string",
			"return_token_strs boolean"}, answer: "tokens count"},
	{route: "POST /detokenize", summary: "Tokens as text",
		body: []string{"tokens! integers"}, answer: "prompt"},
	{route: "GET /health", summary: "200 when ready, 503 while loading or draining",
		answer: "status"},
	{route: "GET /ready", summary: "The same", answer: "status"},
	{route: "GET /version", summary: "The version", answer: "version"},
	{route: "GET /metrics", summary: "Prometheus' text, under vLLM's names"},
	{route: "GET /openapi.json", summary: "This document", answer: "openapi info paths"},
	{route: "GET /docs", summary: "This document as a page"},
	{route: "GET /", summary: "A chat page"},
}
