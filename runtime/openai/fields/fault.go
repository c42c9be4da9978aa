// Errors in OpenAI's form.
//
// Clients depend on status, code and even wording: agents compact their history on
// context_length_exceeded, LiteLLM recognises only the text "This model's maximum context length
// is", every SDK retries 429 and 5xx. What must stay true: an error of the client is a 4xx that
// names the parameter, every other error is a 5xx.

package fields

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// Fault is an error as the client sees it.
type Fault struct {
	Status     int
	Kind       string // "type" in the body
	Code       string // "" is null
	param      string // "" is null
	Message    string
	RetryAfter int // seconds; 0: no header
	TooLong    *sched.ContextLengthError
}

func (f *Fault) Error() string { return f.Message }

// Logged is the fault in the log: its kind and the request's field. Its message is there only where
// the server failed or prompts are logged: the other messages can quote the client.
func (f *Fault) Logged(prompts bool) string {
	kind := cmp.Or(f.Code, f.Kind)
	if prompts || f.Status >= http.StatusInternalServerError {
		return kind + ": " + Brief(f.Message)
	}
	if i := strings.IndexAny(f.param+".", ".["); i > 0 {
		return kind + " in " + f.param[:i]
	}
	return kind
}

// StatusClientGone is for the log only: the client has closed the connection.
const StatusClientGone = 499

const (
	KindInvalid = "invalid_request_error"
	KindServer  = "server_error"

	CodeContextLength = "context_length_exceeded"
)

// Refusal is the fault of a request that must not be retried unchanged.
func Refusal(status int, param, code, message string) *Fault {
	return &Fault{Status: status, Kind: KindInvalid, param: param, Code: code, Message: message}
}

// Failure is the fault of a request that could succeed another time.
func Failure(status int, code, message string) *Fault {
	return &Fault{Status: status, Kind: KindServer, Code: code, Message: message}
}

// WithRetryAfter sets in how many seconds the request may be retried.
func (f *Fault) WithRetryAfter(seconds int) *Fault {
	f.RetryAfter = max(1, seconds)
	return f
}

// Invalid is the fault of a parameter whose value is wrong.
func Invalid(param, format string, a ...any) *Fault {
	return Refusal(http.StatusBadRequest, param, "", fmt.Sprintf(format, a...))
}

// NotFound is the fault of an unknown id, in OpenAI's words.
func NotFound(param, what, id string) *Fault {
	return Refusal(http.StatusNotFound, param, "", what+" with id '"+id+"' not found.")
}

// Unsupported is the fault of a parameter of OpenAI's that this server lacks, with advice.
func Unsupported(param, what, advice string) *Fault {
	return Refusal(http.StatusBadRequest, param, "unsupported_parameter",
		what+" is not supported by this server; "+advice)
}

// FaultOf turns an error of the models or the session into a fault. history is the parameter that
// holds the conversation: "messages" or "input".
func FaultOf(err error, history string) *Fault {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	if long, ok := errors.AsType[*sched.ContextLengthError](err); ok {
		f := Refusal(http.StatusBadRequest, history, CodeContextLength, fmt.Sprintf(
			"This model's maximum context length is %d tokens. However, you requested %d tokens. "+
				"Please reduce the length of the %s.", long.Max, long.Needed, history))
		f.TooLong = long
		return f
	}
	if request, ok := errors.AsType[*session.RequestError](err); ok {
		return Invalid(parameterOf(request.Param, history), "%s", request.Msg)
	}
	if param, ok := errors.AsType[*sample.ParamError](err); ok {
		return Invalid(param.Param, "%s", param.Error())
	}
	if busy, ok := errors.AsType[*session.BusyError](err); ok {
		return &Fault{Status: http.StatusTooManyRequests, Kind: "rate_limit_error",
			Code: "rate_limit_exceeded", RetryAfter: int(busy.RetryAfter / time.Second),
			Message: busy.Error()}
	}
	if limit, ok := errors.AsType[*session.LimitError](err); ok {
		f := &Fault{Status: http.StatusTooManyRequests, Kind: "rate_limit_error",
			Code: "rate_limit_exceeded", Message: limit.Reason}
		return f.WithRetryAfter(int((limit.RetryAfter + time.Second - 1) / time.Second))
	}
	broken, isBroken := errors.AsType[*sched.EngineError](err)
	switch {
	case errors.Is(err, sample.ErrNonFinite):
		return Failure(http.StatusInternalServerError, "non_finite_logits", "the model computed "+
			"NaN or infinite logits, so this request was ended; other requests continue")
	case isBroken:
		return Failure(http.StatusInternalServerError, "engine_fault", withoutFolders(broken))
	case errors.Is(err, sched.ErrClosed):
		return Failure(http.StatusServiceUnavailable, KindServer, "the server is shutting down")
	case errors.Is(err, session.ErrUnavailable):
		return Failure(http.StatusServiceUnavailable, "model_unavailable", withoutFolders(err))
	case errors.Is(err, session.ErrUnknownModel):
		return Refusal(http.StatusNotFound, "model", "model_not_found", withoutFolders(err))
	case errors.Is(err, context.Canceled):
		return Failure(StatusClientGone, "cancelled", "the request was cancelled")
	}
	return Failure(http.StatusInternalServerError, KindServer, withoutFolders(err))
}

// folders matches the folders of an absolute path, without its last name.
var folders = regexp.MustCompile(`(^|[\s"'(=,])(?:[A-Za-z]:[\\/]|/)(?:[^\s/\\:"',]+[\\/])+`)

// withoutFolders removes folders from an error for a client: the server's layout is private.
func withoutFolders(err error) string { return folders.ReplaceAllString(err.Error(), "$1") }

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

func OpenAIFault(f *Fault, _ string) any {
	return errorBody{errorObject{Message: Brief(f.Message), Type: f.Kind,
		Param: OrNull(Brief(f.param)), Code: OrNull(f.Code)}}
}

// Brief shortens a text that may quote megabytes of a client's request.
func Brief(s string) string { return Shorten(s, 1000) }

func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}

func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
