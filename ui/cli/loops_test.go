// serve --no-loop-detection over HTTP: a turn that would be cut as a loop continues.

package cli

import (
	"fmt"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
)

func TestServeLeavesLoopsAlone(t *testing.T) {
	t.Parallel()
	word := token.Get().Encode(nil, " ha")
	const most = 600 // a loop of 512 tokens ends before
	body := fmt.Sprintf(`{"model":"demo","temperature":0,"max_tokens":%d,"logit_bias":{"%d":100},`+
		`"max_reasoning_tokens":0,"messages":[{"role":"user","content":"Laugh."}]}`, most, word[0])
	for alone, s := range map[bool]*served{false: askDemo(t),
		true: serveDemo(t, "--no-loop-detection")} {
		var answer chatReply
		header := s.post("/v1/chat/completions", body, &answer).Header.Get("X-Ossrun-Loop")
		finish, n := answer.Choices[0].Finish, answer.Usage.Generated
		if alone && (finish != "length" || n != most || header != "") ||
			!alone && (finish != "stop" || n >= most || header == "") {
			t.Errorf("%v: finish %s after %d tokens, header %q", alone, finish, n, header)
		}
	}
}
