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
			o.c.add(invalid("function_call", "function_call needs functions"))
		}
		return false
	}
	if o.has("tools") || o.has("tool_choice") {
		o.c.add(invalid("functions", "functions is the deprecated form of tools: only one of both "+
			"can be given"))
	}
	for _, v := range of.listed(o, "functions") {
		of.functions = append(of.functions, readFunction(v.object()))
	}
	switch v := o.get("function_call"); v.Kind() {
	case jsondoc.Null:
	case jsondoc.String:
		if how := v.text(); how != "auto" && how != "none" {
			o.c.add(invalid(v.Path, `function_call is %q, it must be "auto", "none" or an object `+
				"with a name", how))
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
		m.c.add(missing(m.at("name")))
	case !ledger.open[ledger.path]:
		m.c.add(invalid(m.path, "%s: no function_call of the assistant waits for this result",
			m.path))
	case name != ledger.function:
		m.c.add(invalid(m.at("name"), "%s is %q, but the function_call before it is of %q",
			m.at("name"), name, ledger.function))
	}
	ledger.answer(ledger.path)
	talk.result(ledger.path, name, content(m, "content", true))
}
