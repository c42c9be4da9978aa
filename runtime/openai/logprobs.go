// What the answers of several dialects have: logprobs, and ossrun's own part.

package openai

import "github.com/ossrun/ossrun/runtime/session"

// ownPart is what OpenAI's objects have no place for. Clients that do not know it pass over it.
type ownPart struct {
	Loop string `json:"loop"` // why the turn was ended, see session.ErrLoop
}

// ownPartOf tells of a loop that was ended, nil if there was none.
func ownPartOf(done *session.Done) *ownPart {
	if done.Finish != session.FinishLoop {
		return nil
	}
	return &ownPart{session.ErrLoop.Error()}
}

// tokenLogprob is one token, in chat completions and in responses.
type tokenLogprob struct {
	rivalLog
	Top []rivalLog `json:"top_logprobs"`
}

type rivalLog struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"` // numbers: encoding/json would make base64 of []byte
}

func wireLogprobs(list []session.TokenLogprob) []tokenLogprob {
	wire := func(l session.TokenLogprob) rivalLog {
		return rivalLog{l.Token, finite(l.Logprob), numbers(l.Bytes)}
	}
	out := make([]tokenLogprob, len(list))
	for i, l := range list {
		out[i] = tokenLogprob{wire(l), make([]rivalLog, len(l.Top))}
		for k, t := range l.Top {
			out[i].Top[k] = wire(t)
		}
	}
	return out
}

func numbers(b []byte) []int {
	out := make([]int, len(b))
	for i, x := range b {
		out[i] = int(x)
	}
	return out
}

// finite keeps JSON writable: a forbidden token has the logprob -Inf, for which OpenAI uses -9999.
func finite(f float32) float32 {
	if f >= -9999 { // false for NaN too
		return f
	}
	return -9999
}

func orEmpty(list []tokenLogprob) *[]tokenLogprob {
	if list == nil {
		list = []tokenLogprob{}
	}
	return &list
}
