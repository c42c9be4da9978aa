// Checks the port's output against OpenAI's own document: schemas.json, cut out by make_schemas.py.
//
// The validator knows the keywords that the document uses and fails on any other, so nothing is
// skipped silently.

package porttest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

//go:embed schemas.json
var document []byte

// Schemas are OpenAI's, by name.
var Schemas = sync.OnceValue(func() map[string]any {
	var m map[string]any
	if err := json.Unmarshal(document, &m); err != nil {
		panic(err)
	}
	return m
})

// Conform fails the test if v does not match the named schema.
func Conform(t *testing.T, name string, v any) {
	t.Helper()
	if err := fits(Schemas()[name], v, name); err != nil {
		b, _ := json.Marshal(v)
		t.Errorf("%v\nin %s", err, b)
	}
}

func fits(schema, v any, path string) error {
	s, ok := schema.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: no schema", path)
	}
	if v == nil && s["nullable"] == true {
		return nil
	}
	for word, arg := range s {
		if err := fitsWord(s, word, arg, v, path); err != nil {
			return err
		}
	}
	return nil
}

func fitsWord(s map[string]any, word string, arg, v any, path string) error {
	m, isObject := v.(map[string]any)
	switch word {
	case "$ref":
		name := strings.TrimPrefix(arg.(string), "#/components/schemas/")
		return fits(Schemas()[name], v, path+"<"+name+">")
	case "type":
		if !hasType(arg.(string), v) {
			return fmt.Errorf("%s: want %v, got %v", path, arg, v)
		}
	case "enum":
		if !slices.ContainsFunc(arg.([]any), func(x any) bool { return reflect.DeepEqual(x, v) }) {
			return fmt.Errorf("%s: %v is none of %v", path, v, arg)
		}
	case "required":
		for _, name := range arg.([]any) {
			if _, ok := m[name.(string)]; isObject && !ok {
				return fmt.Errorf("%s: %v is missing", path, name)
			}
		}
	case "properties":
		for name, sub := range arg.(map[string]any) {
			if x, ok := m[name]; ok {
				if err := fits(sub, x, path+"."+name); err != nil {
					return err
				}
			}
		}
	case "additionalProperties":
		if sub, ok := arg.(map[string]any); ok && len(sub) > 0 {
			for name, x := range m {
				if err := fits(sub, x, path+"."+name); err != nil {
					return err
				}
			}
		}
	case "items":
		list, _ := v.([]any)
		for i, x := range list {
			if err := fits(arg, x, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case "allOf", "anyOf", "oneOf":
		return fitsUnion(word, arg.([]any), v, path)
	case "minimum", "maximum":
		if f, ok := v.(float64); ok && (word == "minimum" && f < arg.(float64) ||
			word == "maximum" && f > arg.(float64)) {
			return fmt.Errorf("%s: %v is beyond the %s %v", path, f, word, arg)
		}
	case "maxLength":
		if str, ok := v.(string); ok && float64(len(str)) > arg.(float64) {
			return fmt.Errorf("%s: longer than %v", path, arg)
		}
	case "nullable", "default", "format", "deprecated", "maxItems", "minItems", "minLength",
		"pattern",
		"description", "title", "example":
	default:
		return fmt.Errorf("%s: the validator does not know %q", path, word)
	}
	return nil
}

func fitsUnion(word string, members []any, v any, path string) error {
	var errs []string
	for _, sub := range members {
		if err := fits(sub, v, path); err != nil {
			errs = append(errs, err.Error())
		}
	}
	fit := len(members) - len(errs)
	if word == "allOf" && len(errs) > 0 || word != "allOf" && fit == 0 && !(len(members) == 0) ||
		len(members) == 0 {
		return fmt.Errorf("%s: %s: %s", path, word, strings.Join(errs, "; "))
	}
	return nil
}

func hasType(name string, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return name == "object"
	case []any:
		return name == "array"
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	}
	return name == "null"
}

var eventSchemas = map[string]string{
	"response.created":                            "ResponseCreatedEvent",
	"response.in_progress":                        "ResponseInProgressEvent",
	"response.queued":                             "ResponseQueuedEvent",
	"response.completed":                          "ResponseCompletedEvent",
	"response.web_search_call.in_progress":        "ResponseWebSearchCallInProgressEvent",
	"response.web_search_call.searching":          "ResponseWebSearchCallSearchingEvent",
	"response.web_search_call.completed":          "ResponseWebSearchCallCompletedEvent",
	"response.code_interpreter_call.in_progress":  "ResponseCodeInterpreterCallInProgressEvent",
	"response.code_interpreter_call.interpreting": "ResponseCodeInterpreterCallInterpretingEvent",
	"response.code_interpreter_call.completed":    "ResponseCodeInterpreterCallCompletedEvent",
	"response.code_interpreter_call_code.delta":   "ResponseCodeInterpreterCallCodeDeltaEvent",
	"response.code_interpreter_call_code.done":    "ResponseCodeInterpreterCallCodeDoneEvent",
	"response.mcp_call.in_progress":               "ResponseMCPCallInProgressEvent",
	"response.mcp_call.completed":                 "ResponseMCPCallCompletedEvent",
	"response.mcp_call.failed":                    "ResponseMCPCallFailedEvent",
	"response.mcp_call_arguments.delta":           "ResponseMCPCallArgumentsDeltaEvent",
	"response.mcp_call_arguments.done":            "ResponseMCPCallArgumentsDoneEvent",
	"response.mcp_list_tools.in_progress":         "ResponseMCPListToolsInProgressEvent",
	"response.mcp_list_tools.completed":           "ResponseMCPListToolsCompletedEvent",
	"response.output_text.annotation.added":       "ResponseOutputTextAnnotationAddedEvent",
	"response.failed":                             "ResponseFailedEvent",
	"response.incomplete":                         "ResponseIncompleteEvent",
	"response.output_item.added":                  "ResponseOutputItemAddedEvent",
	"response.output_item.done":                   "ResponseOutputItemDoneEvent",
	"response.content_part.added":                 "ResponseContentPartAddedEvent",
	"response.content_part.done":                  "ResponseContentPartDoneEvent",
	"response.output_text.delta":                  "ResponseTextDeltaEvent",
	"response.output_text.done":                   "ResponseTextDoneEvent",
	"response.reasoning_text.delta":               "ResponseReasoningTextDeltaEvent",
	"response.reasoning_text.done":                "ResponseReasoningTextDoneEvent",
	"response.reasoning_summary_part.added":       "ResponseReasoningSummaryPartAddedEvent",
	"response.reasoning_summary_part.done":        "ResponseReasoningSummaryPartDoneEvent",
	"response.reasoning_summary_text.delta":       "ResponseReasoningSummaryTextDeltaEvent",
	"response.reasoning_summary_text.done":        "ResponseReasoningSummaryTextDoneEvent",
	"response.function_call_arguments.delta":      "ResponseFunctionCallArgumentsDeltaEvent",
	"response.function_call_arguments.done":       "ResponseFunctionCallArgumentsDoneEvent",
	"response.custom_tool_call_input.delta":       "ResponseCustomToolCallInputDeltaEvent",
	"response.custom_tool_call_input.done":        "ResponseCustomToolCallInputDoneEvent",
}
