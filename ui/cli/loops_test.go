// serve --no-loop-detection over HTTP: what is a loop without the flag runs on with it.

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
)

func TestServeLeavesLoopsAlone(t *testing.T) {
	word := token.Get().Encode(nil, " ha")
	const most = 1400 // two loops of 512 tokens, in the reasoning and in the answer, end before
	body := fmt.Sprintf(`{"model":"demo","temperature":0,"max_tokens":%d,"logit_bias":{"%d":100},`+
		`"messages":[{"role":"user","content":"Laugh."}]}`, most, word[0])
	for _, flags := range [][]string{nil, {"--no-loop-detection"}} {
		s := serveDemo(t, flags...)
		r, err := s.web.Post(s.url+"/v1/chat/completions", "application/json",
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Choices []struct {
				Finish string `json:"finish_reason"`
			}
			Usage struct {
				Generated int `json:"completion_tokens"`
			}
		}
		err = json.NewDecoder(r.Body).Decode(&answer)
		r.Body.Close()
		if err != nil || r.StatusCode != http.StatusOK || len(answer.Choices) != 1 {
			t.Fatalf("%v: status %d, %v", flags, r.StatusCode, err)
		}
		finish, header := answer.Choices[0].Finish, r.Header.Get("X-Ossrun-Loop")
		if alone := flags != nil; alone && (finish != "length" || answer.Usage.Generated != most ||
			header != "") || !alone && (finish != "stop" || answer.Usage.Generated >= most ||
			header == "") {
			t.Errorf("%v: finish %s after %d tokens, header %q", flags, finish,
				answer.Usage.Generated, header)
		}
	}
}
