// Parts of answers that several dialects share: logprobs, and ossrun's own part.

package answer

import "github.com/ossrun/ossrun/runtime/session"

// OwnPart has members that OpenAI's objects lack. Other clients ignore them.
type OwnPart struct {
	Loop string `json:"loop"` // why the turn was ended, see session.ErrLoop
}

// OwnPartOf reports a loop that was ended, nil if there was none.
func OwnPartOf(done *session.Done) *OwnPart {
	if done.Finish != session.FinishLoop {
		return nil
	}
	return &OwnPart{session.ErrLoop.Error()}
}

// TokenLogprob is one token, in chat completions and in responses.
type TokenLogprob struct {
	alternative
	Top []alternative `json:"top_logprobs"`
}

type alternative struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"` // numbers: encoding/json would make base64 of []byte
}

// WireLogprobs converts logprobs for clients.
func WireLogprobs(list []session.TokenLogprob) []TokenLogprob {
	wire := func(l session.TokenLogprob) alternative {
		return alternative{l.Token, Finite(l.Logprob), byteNumbers(l.Bytes)}
	}
	out := make([]TokenLogprob, len(list))
	for i, l := range list {
		out[i] = TokenLogprob{wire(l), make([]alternative, len(l.Top))}
		for k, t := range l.Top {
			out[i].Top[k] = wire(t)
		}
	}
	return out
}

func byteNumbers(b []byte) []int {
	out := make([]int, len(b))
	for i, x := range b {
		out[i] = int(x)
	}
	return out
}

// Finite keeps JSON valid: a forbidden token has the logprob -Inf, for which OpenAI uses -9999.
func Finite(f float32) float32 {
	if f >= -9999 { // false for NaN too
		return f
	}
	return -9999
}

// OrEmpty is a list that is not null.
func OrEmpty(list []TokenLogprob) *[]TokenLogprob {
	if list == nil {
		list = []TokenLogprob{}
	}
	return &list
}
