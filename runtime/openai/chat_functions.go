// functions and function_call of a request, which OpenAI has deprecated in favour of tools, and the
// messages that go with them.
//
// A request in that form is answered in it. Its calls have no ids; a call's place in the request
// serves as its id. What must stay true: a result follows a call of the same function.

package openai

import "github.com/ossrun/ossrun/harmony/jsondoc"

// readFunctions reads the deprecated parameters, and tells whether the request has them.
func (of *offer) readFunctions(o *object) bool {
	if !o.has("functions") {
		if o.has("function_call") {
			o.get("function_call").invalid(" needs functions")
		}
		return false
	}
	if o.has("tools") || o.has("tool_choice") {
		o.get("functions").invalid(" is the deprecated form of tools: only one of both can " +
			"be given")
	}
	for _, v := range of.list(o, "functions") {
		of.functions = append(of.functions, readFunction(v.object()))
	}
	switch v := o.get("function_call"); v.Kind() {
	case jsondoc.Null:
	case jsondoc.String:
		if how := v.text(); how != "auto" && how != "none" {
			v.must(`"auto", "none" or an object with a name`)
		} else {
			of.mode(v, how)
		}
	default:
		of.name(v, v.object().text("name"))
	}
	return true
}

// readFunctionCall adds the call of an assistant's message.
func readFunctionCall(talk *conversation, m *object, ledger *callLedger) {
	call := m.object("function_call")
	if call == nil {
		return
	}
	ledger.function, ledger.path = call.text("name"), call.path
	ledger.call(ledger.path)
	readCall(talk, call, ledger.path)
}

// readFunctionResult adds what a function has returned.
func readFunctionResult(talk *conversation, m *object, ledger *callLedger) {
	name := m.text("name")
	switch {
	case name == "":
		m.get("name").missing()
	case !ledger.open[ledger.path]:
		m.value().invalid(": no function_call of the assistant waits for this result")
	case name != ledger.function:
		m.get("name").invalid(" is %q, but the function_call before it is of %q", name,
			ledger.function)
	}
	ledger.answer(ledger.path)
	talk.result(ledger.path, name, content(m, "content", true))
}
