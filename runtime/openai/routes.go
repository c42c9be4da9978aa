// The port's API as a table: every route with its handler and its parameters. pages.go makes
// OpenAPI's document and a page from it.
//
// What must stay true: openapi_test.go compares each field of a body with the route's behaviour: a
// wrong type is refused by its name, and a right value is not ignored.

package openai

import (
	"strings"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/chat"
	"github.com/ossrun/ossrun/runtime/openai/completions"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/messages"
	"github.com/ossrun/ossrun/runtime/openai/ollama"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/records"
)

type operation struct {
	route, summary string
	do             answer.Handler
	members
}

type members struct {
	body   []string // in the form of fieldSchema
	query  []string
	answer string // members of every answer, separated by blanks
	stream string // the type of a streamed answer
}

const (
	sse    = "text/event-stream"
	ndjson = "application/x-ndjson"
	jsonl  = "application/x-jsonlines"
)

// Parts that several routes share.
var (
	itemFields = members{query: []string{"after string", "limit integer 1 100", "order asc|desc"},
		answer: "object data first_id last_id has_more"}
	completionObject = "id object created model choices usage"
	fileObject       = "id object bytes created_at filename purpose"
	batchObject      = "id object endpoint input_file_id status created_at"
)

// operations are the routes with their methods; those without a summary are not documented.
func (p *port) operations() []operation {
	noEmbeddings, notFound := refuseRoute("gpt-oss makes no embeddings"), refuseRoute(routesHint)
	return []operation{
		{"POST /v1/chat/completions", "Answer a conversation", p.driver.AnswerHandler(p.chat.Read),
			members{body: fields.DocLines(chat.Parameters()),
				answer: completionObject, stream: sse}},
		{"POST /v1/completions", "Continue a text", p.driver.AnswerHandler(completions.Read),
			members{body: fields.DocLines(completions.Parameters()),
				answer: completionObject, stream: sse}},
		{"POST /v1/embeddings", "", noEmbeddings, members{}},

		{"POST /v1/responses", "Make a response", p.driver.AnswerHandler(p.responses.Read),
			members{body: fields.DocLines(responses.Parameters()),
				answer: "id object created_at status model output error usage", stream: sse}},
		{"GET /v1/responses", "", p.connect, members{}},
		{"GET /v1/responses/{id}", "A stored response, or its events from a number on",
			p.responses.Show, members{query: []string{"stream boolean", "starting_after integer 0"},
				answer: "id object status output", stream: sse}},
		{"DELETE /v1/responses/{id}", "Delete a response", p.responses.Delete,
			members{answer: "id object deleted"}},
		{"POST /v1/responses/{id}/cancel", "End a background response", p.responses.Cancel,
			members{answer: "id object status"}},
		{"GET /v1/responses/{id}/input_items", "What led to a response", p.responses.InputItems,
			itemFields},
		{"POST /v1/responses/input_tokens", "Count the tokens of a prompt",
			p.driver.BodyHandler(p.responses.CountInput),
			members{body: []string{"input any", "model string",
				"instructions string", "tools objects"}, answer: "object input_tokens"}},
		{"POST /v1/responses/compact", "Make a conversation shorter",
			p.driver.BodyHandler(p.responses.Compact),
			members{body: []string{"model! string", "input any", "previous_response_id string"},
				answer: "id object output usage"}},
		{"POST /v1/conversations", "Begin a conversation",
			p.driver.BodyHandler(p.responses.CreateConversation),
			members{body: []string{"items objects", "metadata object"},
				answer: "id object created_at"}},
		{"GET /v1/conversations/{id}", "A conversation", p.responses.ShowConversation,
			members{answer: "id object created_at metadata"}},
		{"POST /v1/conversations/{id}", "Change its metadata",
			p.driver.BodyHandler(p.responses.UpdateConversation),
			members{body: []string{"metadata! object"}, answer: "id object created_at metadata"}},
		{"DELETE /v1/conversations/{id}", "Delete it", p.responses.DeleteConversation,
			members{answer: "id object deleted"}},
		{"GET /v1/conversations/{id}/items", "Its items", p.responses.ListItems, itemFields},
		{"POST /v1/conversations/{id}/items", "Add items to it",
			p.driver.BodyHandler(p.responses.AddItems),
			members{body: []string{"items! objects"}, answer: itemFields.answer}},
		{"GET /v1/conversations/{id}/items/{item}", "One item", p.responses.ShowItem,
			members{answer: "id type"}},
		{"DELETE /v1/conversations/{id}/items/{item}", "Delete an item", p.responses.DeleteItem,
			members{answer: "id"}},
		{"GET /v1/sessions", "", p.listSessions, members{}}, // the chat page's own
		{"POST /v1/sessions/{id}", "", p.driver.BodyHandler(p.saveSession), members{}},
		{"DELETE /v1/sessions/{id}", "", p.deleteSession, members{}},
		{"POST /v1/files", "Upload requests: a form with file, and purpose batch",
			p.responses.Upload, members{answer: fileObject}},
		{"GET /v1/files", "The files", p.responses.ListObjects(records.KindFile), itemFields},
		{"GET /v1/files/{id}", "A file", p.responses.ShowObject(records.KindFile),
			members{answer: fileObject}},
		{"DELETE /v1/files/{id}", "Delete a file", p.responses.DeleteFile,
			members{answer: "id object deleted"}},
		{"GET /v1/files/{id}/content", "Its content", p.responses.ShowContent,
			members{stream: jsonl}},
		{"POST /v1/batches", "Answer the requests of a file, below live ones",
			p.driver.BodyHandler(p.responses.CreateBatch),
			members{body: []string{"input_file_id! string", "endpoint! string",
				"completion_window! string", "metadata object"}, answer: batchObject}},
		{"GET /v1/batches", "The batches", p.responses.ListObjects(records.KindBatch), itemFields},
		{"GET /v1/batches/{id}", "A batch", p.responses.ShowObject(records.KindBatch),
			members{answer: batchObject}},
		{"POST /v1/batches/{id}/cancel", "End a batch with its answers so far",
			p.responses.CancelBatch, members{answer: batchObject}},
		{"GET /v1/models", "The models", p.listModels, members{
			query: []string{"client_version string"}, answer: "object data"}},
		{"GET /v1/models/{id...}", "A model", p.showModel, members{
			answer: "id object created owned_by max_model_len context_length aliases"}},

		{"POST /v1/messages", "Answer a conversation, by Anthropic's API",
			p.driver.AnswerHandler(p.messages.Read), members{
				body:   fields.DocLines(messages.Parameters()),
				answer: "id type role model content stop_reason usage", stream: sse}},
		{"POST /v1/messages/count_tokens", "Count the tokens of its prompt",
			p.driver.BodyHandler(p.messages.CountTokens),
			members{body: []string{"messages! objects", "model string",
				"system any", "tools objects"}, answer: "input_tokens"}},

		{"POST /api/chat", "Answer a conversation, by Ollama's API",
			p.driver.AnswerHandler(p.ollama.ReadChat),
			members{body: fields.DocLines(ollama.ChatParameters()),
				answer: "model created_at done", stream: ndjson}},
		{"POST /api/generate", "Answer a prompt", p.driver.AnswerHandler(p.ollama.ReadGenerate),
			members{body: fields.DocLines(ollama.GenerateParameters()),
				answer: "model created_at done", stream: ndjson}},
		{"GET /api/version", "The version of Ollama's API", version(ollama.Version),
			members{answer: "version"}},
		{"GET /api/tags", "The models, as Ollama lists them", p.ollama.Tags,
			members{answer: "models"}},
		{"GET /api/ps", "Those in memory", p.ollama.Loaded, members{answer: "models"}},
		{"POST /api/show", "A model, as Ollama shows it", p.driver.BodyHandler(p.ollama.Show),
			members{body: []string{"model! string"}, answer: "details model_info capabilities"}},
		{"POST /api/pull", "Succeeds for an installed model", p.driver.BodyHandler(p.ollama.Pull),
			members{body: []string{"model! string", "stream boolean"}, answer: "status",
				stream: ndjson}},
		{"POST /api/embed", "", noEmbeddings, members{}},
		{"POST /api/embeddings", "", noEmbeddings, members{}},

		{"POST /tokenize", "A text or a conversation as tokens", p.driver.BodyHandler(p.tokenize),
			members{body: []string{"prompt string", "messages objects", "tools any", "model string",
				"return_token_strs boolean"}, answer: "tokens count"}},
		{"POST /detokenize", "Tokens as text", p.driver.BodyHandler(p.detokenize),
			members{body: []string{"tokens! integers"}, answer: "prompt"}},
		{"GET /health", "200 when ready, 503 while loading or draining", p.health,
			members{answer: "status"}},
		{"GET /ready", "The same", p.health, members{answer: "status"}},
		{"GET /version", "The version", version(p.Version), members{answer: "version"}},
		{"GET /metrics", "Prometheus' text, under vLLM's names", p.showMetrics, members{}},
		{"GET /openapi.json", "This document", p.showDocument,
			members{answer: "openapi info paths"}},
		{"GET /docs", "This document as a page", p.showDocs, members{}},
		{"GET /{$}", "A chat page", p.showPage, members{}},
		{" /{$}", "", notFound, members{}},
		{" /", "", notFound, members{}},
	}
}

// documented lists the operations of the document, with paths as a client writes them.
func (p *port) documented() (list []operation) {
	for _, o := range p.operations() {
		o.route = strings.NewReplacer("...", "", "{$}", "").Replace(o.route)
		if o.summary != "" {
			list = append(list, o)
		}
	}
	return list
}
