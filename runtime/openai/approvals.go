// Approval of MCP calls: require_approval, and the items mcp_approval_request and
// mcp_approval_response.
//
// A call that needs approval ends its response with an approval request. The response that brings
// the answer runs the call, or tells the model that it may not, and goes on. What must stay true: a
// call that needs approval is never run without an answer to its own request; an approved call is
// run once; no call stays without a result, so that the conversation can go on whatever the client
// answers.

package openai

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/session"
)

// approvalRule says which functions of a server need approval for each call.
type approvalRule struct {
	always, never []string
	others        bool // those in neither list
}

// readApproval reads require_approval. Servers are configured by who runs this process, so their
// calls are allowed unless the client says otherwise.
func readApproval(t *object) (rule approvalRule) {
	v := t.get("require_approval")
	switch v.Kind() {
	case jsondoc.Null:
	case jsondoc.Object:
		filter := v.object()
		always, never := filter.object("always"), filter.object("never")
		rule = approvalRule{named(always), named(never), always == nil || never != nil ||
			!always.has("tool_names")} // what read_only says of a tool is not known here
	default:
		switch how := v.text(); how {
		case "never":
		case "always":
			rule.others = true
		default:
			v.must("always, never or an object")
		}
	}
	return rule
}

// named are the tool_names of a filter.
func named(filter *object) (names []string) {
	for _, n := range filter.list("tool_names") {
		names = append(names, n.text())
	}
	return names
}

func (r approvalRule) asks(function string) bool {
	switch {
	case listed(r.always, function):
		return true
	case listed(r.never, function):
		return false
	}
	return r.others
}

// listed tells whether a list of a server's tools has a function, which may carry the server's name
// in front of the tool's.
func listed(names []string, function string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return function == name || strings.HasSuffix(function, "_"+name)
	})
}

type approvalItem struct {
	itemHead           // mcp_approval_request
	ServerLabel string `json:"server_label"`
	Name        string `json:"name"`
	Arguments   string `json:"arguments"`
}

// The id of a request is made of the id of its call, so that nothing but the conversation has to be
// kept.
const approvalPrefix = "mcpr_"

func approvalID(call string) string   { return approvalPrefix + call }
func approvedCall(item string) string { return strings.TrimPrefix(item, approvalPrefix) }

// askApproval adds the item that asks for a call.
func (c *composer) askApproval(call *toolCall, arguments string) {
	c.begin(&approvalItem{itemHead{approvalID(call.ID), "mcp_approval_request"}, call.tool.label,
		call.Name, runnable(arguments)})
	c.close("completed")
}

// readAnswer handles an approval request of an earlier response. What follows it in the input
// decides: its answer, or the call that was made for it.
func (in *inputReader) readAnswer(o *object, after []value) {
	id, name := o.text("id"), o.text("name")
	call := approvedCall(id)
	made, answer := in.following(id, after)
	if made {
		return // the call is in the input, with its result
	}
	if last := in.talk.last(); last == nil || last.CallID != call {
		readCall(in.talk, o, call)
	}
	switch {
	case answer.flag("approve"):
		in.approved = &session.Call{ID: call, Name: name, Arguments: o.text("arguments"),
			Recipient: harmony.FunctionsNamespace + "." + name}
	case answer != nil:
		in.talk.result(call, name, joinParagraphs("The user did not allow this call.",
			answer.text("reason")))
	default:
		in.talk.result(call, name, "The call was not made: the user has not said whether it may.")
	}
}

// requestAnswers is what an input says of an approval request: the last call made for it and the
// last answer to it, each with the number of items from there to the end.
type requestAnswers struct {
	answer             *object
	called             bool
	behindCall, behind int
}

// following tells whether after has the call that was made for a request, and the last answer to
// it. All lists that it is given end alike, so only the longest one is searched, once.
func (in *inputReader) following(id string, after []value) (made bool, answer *object) {
	if len(after) > in.answersOf {
		in.answers, in.answersOf = map[string]*requestAnswers{}, len(after)
		for i, v := range after {
			next := v.object()
			kind := next.text("type")
			if kind != "mcp_call" && kind != "mcp_approval_response" {
				continue
			}
			request := next.text("approval_request_id")
			f := in.answers[request]
			if f == nil {
				f = &requestAnswers{}
				in.answers[request] = f
			}
			if kind == "mcp_call" {
				f.called, f.behindCall = true, len(after)-i
			} else {
				f.answer, f.behind = next, len(after)-i
			}
		}
	}
	f := in.answers[id]
	if f == nil {
		return false, nil
	}
	if f.answer != nil && f.behind <= len(after) {
		answer = f.answer
	}
	return f.called && f.behindCall <= len(after), answer
}

// openRequests handles the approval requests that a stored response ended in.
func (in *inputReader) openRequests(output []value, o *object) {
	var after []value
	if v := o.get("input"); v.Kind() == jsondoc.Array {
		after = v.messages()
	}
	for _, v := range output {
		if v.object().text("type") == "mcp_approval_request" {
			in.appendItem(v, after)
		}
	}
}

// checkAnswer complains about an answer to a request that nobody made.
func (in *inputReader) checkAnswer(o *object) {
	id := o.text("approval_request_id")
	o.need("approve")
	if !in.requests[id] {
		o.c.add(refusal(http.StatusBadRequest, o.at("approval_request_id"), "",
			"no request for approval with the id '"+id+"' came before this answer"))
	}
}

// checkApproved complains where an approved call is not the last thing that was said.
func (in *inputReader) checkApproved(o *object) {
	if last := in.talk.last(); in.approved != nil && last.CallID != in.approved.ID {
		o.c.add(invalid("input", "the approved call %s must be run before anything else is said: "+
			"send the answer alone", in.approved.Name))
	}
}

// approved begins with the approved call, as if the model had just made it.
func approved(call session.Call) firstTurn {
	return func(_ context.Context, r session.Request) (session.Turn, error) {
		if !slices.ContainsFunc(r.Functions, func(f harmony.ToolDescription) bool {
			return f.Name == call.Name
		}) {
			return nil, invalid("tools", "the approved call needs its server: send the mcp tool "+
				"that offers %s again", call.Name)
		}
		return &approvedTurn{call: call}, nil
	}
}

// approvedTurn says one call.
type approvedTurn struct {
	call session.Call
	said int
}

func (t *approvedTurn) Next() (session.Event, bool) {
	events := []session.Event{
		session.CallStart{ID: t.call.ID, Name: t.call.Name, Recipient: t.call.Recipient},
		session.CallArguments{Text: t.call.Arguments}, session.CallEnd{Arguments: t.call.Arguments},
		session.Done{Finish: session.FinishToolCalls}}
	if t.said++; t.said > len(events) {
		return nil, false
	}
	return events[t.said-1], true
}

func (t *approvedTurn) Result() session.Result {
	return session.Result{Calls: []session.Call{t.call},
		Done: session.Done{Finish: session.FinishToolCalls}}
}
