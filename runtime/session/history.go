// Constructors for the messages of a history, so that the chat and the port write them in the same
// Harmony form.

package session

import "github.com/ossrun/ossrun/harmony"

// User is what a person says.
func User(text string) Message { return Message{Message: harmony.Text(harmony.RoleUser, text)} }

// Developer is an instruction that outranks the user's.
func Developer(text string) Message {
	return Message{Message: harmony.DeveloperText(text)}
}

// AssistantAnswer is an earlier answer, in the final channel.
func AssistantAnswer(text string) Message {
	return Message{Message: harmony.Text(harmony.RoleAssistant, text).WithChannel("final")}
}

// AssistantReasoning is the thought before an answer or a call, in the analysis channel.
func AssistantReasoning(text string) Message {
	return Message{Message: harmony.Text(harmony.RoleAssistant, text).WithChannel("analysis")}
}

// AssistantCommentary is text for the user that comes before a call.
func AssistantCommentary(text string) Message {
	return Message{Message: harmony.Text(harmony.RoleAssistant, text).WithChannel("commentary")}
}

// FunctionCall is an earlier call of the function name with JSON arguments.
func FunctionCall(id, name, arguments string) Message {
	return Message{CallID: id, Message: harmony.Text(harmony.RoleAssistant, arguments).
		WithChannel("commentary").WithRecipient("functions." +
		name).WithContentType("<|constrain|>json")}
}

// TextCall is an earlier call of a function whose arguments are a text.
func TextCall(id, name, input string) Message {
	m := FunctionCall(id, name, input)
	m.ContentType = ""
	return m
}

// FunctionResult is what the function name returned for the call id.
func FunctionResult(id, name, output string) Message {
	m := harmony.Text(harmony.RoleTool, output).WithChannel("commentary").WithRecipient("assistant")
	m.Name = "functions." + name
	return Message{CallID: id, Message: m}
}
