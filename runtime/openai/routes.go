// The port's API as a table: every route with its handler. Its parameters and texts are in
// routes.json; pages.go makes OpenAPI's document and a page from both.
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
	route      string
	do         answer.Handler
	parameters []fields.Parameter // of the body, where a dialect has a table of them
}

// describedOperation is an operation with its entry in routes.json.
type describedOperation struct {
	operation
	example
}

// Parts of every list of records.
var listQuery = []string{"after string", "limit integer 1 1000", "order asc|desc"}

const listMembers = "object data first_id last_id has_more"

// operations are the routes with their methods; routes.json documents them, or not.
func (p *port) operations() []operation {
	noEmbeddings, notFound := refuseRoute("gpt-oss makes no embeddings"), refuseRoute(routesHint)
	return []operation{
		{"POST /v1/chat/completions", p.driver.AnswerHandler(p.chat.Read), chat.Parameters()},
		{"GET /v1/chat/completions", p.responses.ListObjects(records.KindCompletion, ""), nil},
		{"GET /v1/chat/completions/{id}", p.responses.ShowObject(records.KindCompletion), nil},
		{"POST /v1/chat/completions/{id}", p.driver.BodyHandler(p.responses.UpdateCompletion),
			nil},
		{"DELETE /v1/chat/completions/{id}",
			p.responses.DeleteObject(records.KindCompletion, "chat.completion.deleted"), nil},
		{"GET /v1/chat/completions/{id}/messages", p.responses.CompletionMessages, nil},
		{"POST /v1/completions", p.driver.AnswerHandler(completions.Read),
			completions.Parameters()},
		{"POST /v1/embeddings", noEmbeddings, nil},

		{"POST /v1/responses", p.driver.AnswerHandler(p.responses.Read), responses.Parameters()},
		{"GET /v1/responses", p.connect, nil},
		{"GET /v1/responses/{id}", p.responses.Show, nil},
		{"DELETE /v1/responses/{id}", p.responses.Delete, nil},
		{"POST /v1/responses/{id}/cancel", p.responses.Cancel, nil},
		{"GET /v1/responses/{id}/input_items", p.responses.InputItems, nil},
		{"POST /v1/responses/input_tokens", p.driver.BodyHandler(p.responses.CountInput), nil},
		{"POST /v1/responses/compact", p.driver.BodyHandler(p.responses.Compact), nil},
		{"POST /v1/conversations", p.driver.BodyHandler(p.responses.CreateConversation), nil},
		{"GET /v1/conversations/{id}", p.responses.ShowConversation, nil},
		{"POST /v1/conversations/{id}", p.driver.BodyHandler(p.responses.UpdateConversation), nil},
		{"DELETE /v1/conversations/{id}", p.responses.DeleteConversation, nil},
		{"GET /v1/conversations/{id}/items", p.responses.ListItems, nil},
		{"POST /v1/conversations/{id}/items", p.driver.BodyHandler(p.responses.AddItems), nil},
		{"GET /v1/conversations/{id}/items/{item}", p.responses.ShowItem, nil},
		{"DELETE /v1/conversations/{id}/items/{item}", p.responses.DeleteItem, nil},
		{"GET /v1/sessions", p.listSessions, nil}, // the chat page's own
		{"POST /v1/sessions/{id}", p.driver.BodyHandler(p.saveSession), nil},
		{"DELETE /v1/sessions/{id}", p.deleteSession, nil},
		{"POST /v1/files", p.responses.Upload, nil},
		{"GET /v1/files", p.responses.ListObjects(records.KindFile, "file-"), nil},
		{"GET /v1/files/{id}", p.responses.ShowObject(records.KindFile), nil},
		{"DELETE /v1/files/{id}", p.responses.DeleteObject(records.KindFile, "file"), nil},
		{"GET /v1/files/{id}/content", p.responses.ShowContent, nil},
		{"POST /v1/batches", p.driver.BodyHandler(p.responses.CreateBatch), nil},
		{"GET /v1/batches", p.responses.ListObjects(records.KindBatch, "batch_"), nil},
		{"GET /v1/batches/{id}", p.responses.ShowObject(records.KindBatch), nil},
		{"POST /v1/batches/{id}/cancel", p.responses.CancelBatch, nil},
		{"GET /v1/models", p.listModels, nil},
		{"GET /v1/models/{id...}", p.showModel, nil},

		{"POST /v1/messages", p.driver.AnswerHandler(p.messages.Read), messages.Parameters()},
		{"POST /v1/messages/count_tokens", p.driver.BodyHandler(p.messages.CountTokens), nil},
		{"POST /v1/messages/batches", p.driver.BodyHandler(p.responses.CreateMessageBatch), nil},
		{"GET /v1/messages/batches", p.responses.ListMessageBatches, nil},
		{"GET /v1/messages/batches/{id}",
			responses.OfMessages(p.responses.ShowObject(records.KindBatch)), nil},
		{"DELETE /v1/messages/batches/{id}", p.responses.DeleteMessageBatch, nil},
		{"POST /v1/messages/batches/{id}/cancel", responses.OfMessages(p.responses.CancelBatch),
			nil},
		{"GET /v1/messages/batches/{id}/results", p.responses.MessageBatchResults, nil},

		{"POST /api/chat", p.driver.AnswerHandler(p.ollama.ReadChat), ollama.ChatParameters()},
		{"POST /api/generate", p.driver.AnswerHandler(p.ollama.ReadGenerate),
			ollama.GenerateParameters()},
		{"GET /api/version", version(ollama.Version), nil},
		{"GET /api/tags", p.ollama.Tags, nil},
		{"GET /api/ps", p.ollama.Loaded, nil},
		{"POST /api/show", p.driver.BodyHandler(p.ollama.Show), nil},
		{"POST /api/pull", p.driver.BodyHandler(p.ollama.Pull), nil},
		{"POST /api/embed", noEmbeddings, nil},
		{"POST /api/embeddings", noEmbeddings, nil},

		{"POST /tokenize", p.driver.BodyHandler(p.tokenize), nil},
		{"POST /detokenize", p.driver.BodyHandler(p.detokenize), nil},
		{"GET /health", p.health, nil},
		{"GET /ready", p.health, nil},
		{"GET /version", version(p.Version), nil},
		{"GET /props", p.showProps, nil},
		{"GET /metrics", p.showMetrics, nil},
		{"GET /openapi.json", p.showDocument, nil},
		{"GET /docs", p.showDocs, nil},
		{"GET /{$}", p.showPage, nil},
		{" /{$}", notFound, nil},
		{" /", notFound, nil},
	}
}

// documented lists the operations of the document, with paths as a client writes them.
func (p *port) documented() (list []describedOperation) {
	for _, operation := range p.operations() {
		o := describedOperation{operation: operation}
		o.route = strings.NewReplacer("...", "", "{$}", "").Replace(o.route)
		if o.example = docs().examples[o.route]; o.Summary == "" {
			continue
		}
		if o.parameters != nil {
			o.Body = fields.DocLines(o.parameters)
		}
		if o.List {
			o.Query, o.Members = listQuery, listMembers
		}
		list = append(list, o)
	}
	return list
}
