// Errors in OpenAI's form.
//
// Clients depend on status, code and even wording: agents compact their history on
// context_length_exceeded, LiteLLM recognises only the text "This model's maximum context length
// is", every SDK retries 429 and 5xx. What must stay true: an error of the client is a 4xx that
// names the parameter, every other error is a 5xx.

package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// fault is an error as the client sees it.
type fault struct {
	status     int
	kind       string // "type" in the body
	code       string // "" is null
	param      string // "" is null
	message    string
	retryAfter int // seconds; 0: no header
	tooLong    *sched.ContextLengthError
}

func (f *fault) Error() string { return f.message }

// statusClientGone is for the log only: the client has closed the connection.
const statusClientGone = 499

const (
	kindInvalid = "invalid_request_error"
	kindServer  = "server_error"

	codeContextLength = "context_length_exceeded"
)

func refusal(status int, param, code, message string) *fault {
	return &fault{status: status, kind: kindInvalid, param: param, code: code, message: message}
}

// failure is the fault of a request that could succeed another time.
func failure(status int, code, message string) *fault {
	return &fault{status: status, kind: kindServer, code: code, message: message}
}

func invalid(param, format string, a ...any) *fault {
	return refusal(http.StatusBadRequest, param, "", fmt.Sprintf(format, a...))
}

// missing is the fault of a required parameter that is absent.
func missing(param string) *fault {
	return refusal(http.StatusBadRequest, param, "missing_required_parameter",
		"missing required parameter: "+param)
}

// notFound is the fault of an id that leads to nothing, in OpenAI's words.
func notFound(param, what, id string) *fault {
	return refusal(http.StatusNotFound, param, "", what+" with id '"+id+"' not found.")
}

// unsupported is the fault of a parameter that OpenAI has and this server has not; instead says
// what to do.
func unsupported(param, what, instead string) *fault {
	return refusal(http.StatusBadRequest, param, "unsupported_parameter",
		what+" is not supported by this server; "+instead)
}

// faultOf turns an error of the models or the session into a fault. history is the parameter that
// holds the conversation: "messages" or "input".
func faultOf(err error, history string) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if long, ok := errors.AsType[*sched.ContextLengthError](err); ok {
		f := refusal(http.StatusBadRequest, history, codeContextLength, fmt.Sprintf(
			"This model's maximum context length is %d tokens. However, you requested %d tokens. "+
				"Please reduce the length of the %s.", long.Max, long.Asked, history))
		f.tooLong = long
		return f
	}
	if request, ok := errors.AsType[*session.RequestError](err); ok {
		return invalid(parameterOf(request.Param, history), "%s", request.Msg)
	}
	if param, ok := errors.AsType[*sample.ParamError](err); ok {
		return invalid(param.Param, "%s", param.Error())
	}
	if busy, ok := errors.AsType[*session.BusyError](err); ok {
		return &fault{status: http.StatusTooManyRequests, kind: "rate_limit_error",
			code: "rate_limit_exceeded", retryAfter: int(busy.After / time.Second),
			message: busy.Error()}
	}
	broken, isBroken := errors.AsType[*sched.EngineError](err)
	switch {
	case errors.Is(err, sample.ErrNonFinite):
		return failure(http.StatusInternalServerError, "non_finite_logits", "the model computed "+
			"NaN or infinite logits, so this request was ended; other requests go on")
	case isBroken:
		return failure(http.StatusInternalServerError, "engine_fault", broken.Error())
	case errors.Is(err, sched.ErrClosed):
		return failure(http.StatusServiceUnavailable, kindServer, "the server is shutting down")
	case errors.Is(err, session.ErrUnavailable):
		return failure(http.StatusServiceUnavailable, "model_unavailable", err.Error())
	case errors.Is(err, session.ErrUnknownModel):
		return refusal(http.StatusNotFound, "model", "model_not_found", err.Error())
	case errors.Is(err, context.Canceled):
		return failure(statusClientGone, "cancelled", "the request was cancelled")
	}
	return failure(http.StatusInternalServerError, kindServer, err.Error())
}

func parameterOf(field, history string) string {
	switch field {
	case "Messages", "messages":
		return history
	case "effort", "Effort":
		return "reasoning_effort"
	case "functions", "Functions":
		return "tools"
	}
	return field
}

type errorBody struct {
	Error errorObject `json:"error"`
}

type errorObject struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// openaiFault is the body of a fault.
func openaiFault(f *fault, _ string) any { return f.body() }

func (f *fault) body() errorBody {
	return errorBody{errorObject{Message: brief(f.message), Type: f.kind,
		Param: orNull(brief(f.param)), Code: orNull(f.code)}}
}

// brief shortens a text that may quote megabytes of a client's request.
func brief(s string) string {
	const most = 1000 // bytes
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// marshal is json.Marshal that leaves <, > and & readable.
func marshal(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes()[:buf.Len()-1], nil
}
