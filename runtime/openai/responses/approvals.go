// Approval of MCP calls: require_approval, and the items mcp_approval_request and
// mcp_approval_response.
//
// A call that needs approval ends its response with an approval request. The response that brings
// the answer runs the call, or tells the model that it was denied, and continues. What must stay
// true: a call that needs approval is never run without an answer to its own request; an approved
// call is run once; every call gets a result, so that the conversation can continue after any
// answer.

package responses

import (
	"net/http"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
)

type approvalItem struct {
	itemHead           // mcp_approval_request
	ServerLabel string `json:"server_label"`
	Name        string `json:"name"`
	Arguments   string `json:"arguments"`
}

// The id of a request is derived from the id of its call, so that nothing but the conversation has
// to be stored.
const approvalPrefix = "mcpr_"

func approvalID(call string) string { return approvalPrefix + call }

func (c *composer) askApproval(call *toolCall, arguments string) {
	c.openItem(&approvalItem{itemHead{approvalID(call.ID), "mcp_approval_request"}, call.tool.Label,
		call.tool.ServerName(call.Recipient), tools.RunnableArguments(arguments)})
	c.closeItem("completed")
}

// readAnswer handles an approval request of an earlier response. The following input decides: its
// answer, or the call that was made for it.
func (r *inputReader) readAnswer(o *fields.Object, following []fields.Value) {
	id := o.Text("id")
	call := strings.TrimPrefix(id, approvalPrefix)
	called, reply := r.answerTo(id, following)
	if called {
		return // the call is in the input, with its result
	}
	if last := r.conv.Last(); last == nil || last.CallID != call {
		readServerCall(r.conv, o, call)
	}
	switch {
	case reply.Flag("approve"):
		r.approved = &tools.ApprovedCall{Label: o.Text("server_label"), Name: o.Text("name"),
			ID: call, Arguments: o.Text("arguments")}
	case reply != nil:
		r.conv.Result(call, "", request.JoinParagraphs("The user did not allow this call.",
			reply.Text("reason")))
	default:
		r.conv.Result(call, "", "The call was not made: the user has not said whether it may.")
	}
}

// answerTo tells whether following has the call that was made for a request, and returns the last
// answer to it. Every caller passes a suffix of one list, so the longest is indexed once.
func (r *inputReader) answerTo(id string, following []fields.Value) (
	made bool, reply *fields.Object) {
	if len(following) > r.answersOf {
		r.madeCalls, r.answers = map[string]bool{}, map[string]*fields.Object{}
		r.answersOf = len(following)
		for _, v := range following {
			switch o := v.Object(); o.Text("type") {
			case "mcp_call":
				r.madeCalls[o.Text("approval_request_id")] = true
			case "mcp_approval_response":
				r.answers[o.Text("approval_request_id")] = o
			}
		}
	}
	return r.madeCalls[id], r.answers[id]
}

// openRequests handles the approval requests at the end of a stored response.
func (r *inputReader) openRequests(output []fields.Value, o *fields.Object) {
	var after []fields.Value
	if v := o.Get("input"); v.Kind() == jsondoc.Array {
		after = v.Messages()
	}
	for _, v := range output {
		if v.Object().Text("type") == "mcp_approval_request" {
			r.appendItem(v, after)
		}
	}
}

func (r *inputReader) checkAnswer(o *fields.Object) {
	o.Need("approve")
	if id := o.Text("approval_request_id"); !r.requests[id] {
		o.AddFault(fields.Refusal(http.StatusBadRequest, o.PathOf("approval_request_id"), "",
			"no request for approval with the id '"+id+"' came before this answer"))
	}
}
