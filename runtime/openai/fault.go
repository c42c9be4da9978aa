// Errors in OpenAI's form.
//
// Clients depend on status, code and even wording: agents compact their history on
// context_length_exceeded, LiteLLM recognises only the text "This model's maximum context length
// is", every SDK retries 429 and 5xx. What must stay true: an error of the client is a 4xx that
// names the parameter, every other error is a 5xx.

package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
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
}

func (f *fault) Error() string { return f.message }

// statusClientGone is for the log only: the client has closed the connection.
const statusClientGone = 499

const (
	kindInvalid = "invalid_request_error"
	kindServer  = "server_error"

	codeContextLength = "context_length_exceeded"
)

func invalid(param, format string, a ...any) *fault {
	return &fault{status: http.StatusBadRequest, kind: kindInvalid, param: param,
		message: fmt.Sprintf(format, a...)}
}

// missing is the fault of a required parameter that is absent.
func missing(param string) *fault {
	return &fault{status: http.StatusBadRequest, kind: kindInvalid,
		code: "missing_required_parameter", param: param,
		message: "missing required parameter: " + param}
}

// unsupported is the fault of a parameter that OpenAI has and this server has not; instead says
// what to do.
func unsupported(param, what, instead string) *fault {
	return &fault{status: http.StatusBadRequest, kind: kindInvalid, code: "unsupported_parameter",
		param:   param,
		message: what + " is not supported by this server; " + instead}
}

// faultOf turns an error of the models or the session into a fault. history is the parameter that
// holds the conversation: "messages" or "input".
func faultOf(err error, history string) *fault {
	var f *fault
	var tooLong *sched.ContextLengthError
	var broken *sched.EngineError
	var busy *session.BusyError
	var request *session.RequestError
	var param *sample.ParamError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &tooLong):
		return &fault{status: http.StatusBadRequest, kind: kindInvalid, code: codeContextLength,
			param: history,
			message: fmt.Sprintf("This model's maximum context length is %d tokens. However, you "+
				"requested %d tokens. "+
				"Please reduce the length of the %s.", tooLong.Max, tooLong.Asked, history)}
	case errors.As(err, &request):
		return invalid(parameterOf(request.Param, history), "%s", request.Msg)
	case errors.As(err, &param):
		return invalid(param.Param, "%s", param.Error())
	case errors.Is(err, sample.ErrNonFinite):
		return &fault{status: http.StatusInternalServerError, kind: kindServer,
			code: "non_finite_logits",
			message: "the model computed NaN or infinite logits, so this request was ended; " +
				"other requests go on"}
	case errors.As(err, &broken):
		return &fault{status: http.StatusInternalServerError, kind: kindServer,
			code: "engine_fault", message: broken.Error()}
	case errors.As(err, &busy):
		return &fault{status: http.StatusTooManyRequests, kind: "rate_limit_error",
			code:       "rate_limit_exceeded",
			retryAfter: int(busy.After / time.Second), message: busy.Error()}
	case errors.Is(err, sched.ErrClosed):
		return &fault{status: http.StatusServiceUnavailable, kind: kindServer, code: kindServer,
			message: "the server is shutting down"}
	case errors.Is(err, session.ErrUnavailable):
		return &fault{status: http.StatusServiceUnavailable, kind: kindServer,
			code: "model_unavailable", message: err.Error()}
	case errors.Is(err, session.ErrUnknownModel):
		return &fault{status: http.StatusNotFound, kind: kindInvalid, code: "model_not_found",
			param: "model", message: err.Error()}
	case errors.Is(err, context.Canceled):
		return &fault{status: statusClientGone, kind: kindServer, code: "cancelled",
			message: "the request was cancelled"}
	}
	return &fault{status: http.StatusInternalServerError, kind: kindServer, code: kindServer,
		message: err.Error()}
}

// parameterOf translates a field of session.Request into the client's parameter.
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

// orNull is a string that becomes null in JSON if it is empty.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// writeFault answers with an error. If the headers of a whole answer are sent already (patient.go),
// it cuts the connection.
func writeFault(w http.ResponseWriter, f *fault) {
	if headersSent(w) {
		noteError(w, brief(f.message))
		panic(http.ErrAbortHandler)
	}
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.retryAfter))
	}
	if f.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	noteError(w, brief(f.message))
	writeJSON(w, f.status, f.body())
}

// writeJSON writes one whole answer. A failed write is ignored: the client is gone.
func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError,
			[]byte(`{"error":{"message":"the answer could not be encoded",`+
				`"type":"server_error","param":null,"code":null}}`)
		noteError(w, err.Error())
	}
	if !headersSent(w) {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(b)+1))
		w.WriteHeader(status)
	}
	_, _ = w.Write(append(b, '\n'))
}

// marshal is json.Marshal that leaves <, > and & readable.
func marshal(v any) (json.RawMessage, error) {
	var buf writeBuffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return json.RawMessage(buf[:len(buf)-1]), nil
}

type writeBuffer []byte

func (b *writeBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
