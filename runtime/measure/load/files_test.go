// Files of requests: each format's members, order, lengths and refusals.

package load

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
)

var talksText = `[{"conversations":[{"value":"What is the capital of France?"},
	{"value":"It is Paris, of course."}]},
	{"conversations":[{"value":"Hi"},{"value":"too short to be counted, the question"}]},
	{"conversations":[{"value":"A question without an answer"}]},
	{"conversations":[{"value":"` + strings.Repeat("word ", 1100) + `"},{"value":"a long one"}]},
	{"conversations":[{"value":"Name three rivers, please."},{"value":"Rhine, Elbe and Oder."}]}]`

func TestFiles(t *testing.T) {
	trace := Trace{ChunkTokens: 16, Multiplier: .001, Timestamp: "at", Input: "in", Output: "out",
		Hashes: "ids"}
	for _, c := range []struct {
		name string
		file File
		text string
		n    int
		want string // input and output tokens, time and prompt's beginning of each; or the error
	}{
		{"short and long talks are left out", File{Format: "sharegpt", NoShuffle: true}, talksText, 2,
			"7+7 What is th | 6+8 Name three"},
		{"as many tokens as asked for", File{Format: "sharegpt", NoShuffle: true, Output: 77},
			talksText, 1, "7+77 What is th"},
		{"too few are sent again", File{Format: "custom", NoShuffle: true}, `{"prompt":"a"}`, 3,
			"1+256 a | 1+256 a | 1+256 a"},
		{"or not", File{Format: "custom", NoShuffle: true, NoOversample: true}, `{"prompt":"a"}`, 3,
			"1+256 a"},
		{"custom by its own lengths", File{Format: "custom", Output: -1, NoShuffle: true},
			`{"prompt":"a","output_tokens":5}` + "\n" + `{"prompt":"b","output_tokens":6}`, 2,
			"1+5 a | 1+6 b"},
		{"custom without them", File{Format: "custom", Output: -1}, `{"prompt":"a"}`, 2,
			"no output_tokens"},
		{"a category", File{Format: "spec_bench", Category: "qa", Output: 9},
			`{"turns":["x","y"],"category":"mt"}` + "\n" + `{"turns":["z","y"],"category":"qa"}`, 1,
			"1+9 z"},
		{"no such category", File{Format: "spec_bench", Category: "no"},
			`{"turns":["x"],"category":"mt"}`, 1, "spec_bench: no question has"},
		{"MT-Bench", File{Format: "hf"}, `{"prompt":["x","y"]}`, 1, "1+256 x"},
		{"GSM8K", File{Format: "hf"}, `[{"question":"x","answer":"y"}]`, 1, "1+256 x"},
		{"AIMO", File{Format: "hf"}, `{"problem":"x"}`, 1, "1+256 x"},
		{"InstructCoder", File{Format: "hf"}, `{"instruction":"x","input":"y"}`, 1, "3+256 x\ny"},
		{"nothing to ask", File{Format: "hf"}, `{"answer":"x"}`, 1, "has no prompt"},
		{"a prompt that is none", File{Format: "custom"}, `{"prompt":7}`, 1, "neither a text"},
		{"no JSON", File{Format: "custom"}, `{"prompt":"a"}` + "\nb", 1, "in the format custom"},
		{"nothing", File{Format: "custom"}, "", 1, "no question has"},
		{"BurstGPT", File{Format: "burstgpt", NoShuffle: true},
			"Timestamp,Model,Request tokens,Response tokens\n1,ChatGPT,5,6\n2,GPT-4,7,8\n" +
				"3,GPT-4,9,0\n", 1, "7+8 "},
		{"BurstGPT's columns", File{Format: "burstgpt"}, "a,b\n1,2\n", 1, "its columns"},
		{"no CSV", File{Format: "burstgpt"}, "", 1, "burstgpt"},
		{"a trace", File{Format: "timed_trace", Trace: trace},
			`{"at":0,"in":20,"out":3,"ids":[1,2]}` + "\n" + `{"at":1500,"in":18,"out":4,"ids":[1,3]}`,
			9, "20+3  | 18+4 1.5s "},
		{"a trace's members", File{Format: "timed_trace", Trace: trace}, `{"at":0,"in":20}`, 1,
			"no out"},
	} {
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		c.file.Path = file
		list, err := c.file.Requests(c.n, 1)
		var got []string
		for i, r := range list {
			if r.InputTokens != len(token.Get().Encode(nil, r.Prompt)) {
				t.Errorf("%s: %d: %q", c.name, r.InputTokens, r.Prompt)
			}
			at := ""
			if r.Due > 0 {
				at = r.Due.String() + " "
			}
			prompt := r.Prompt[:min(len(r.Prompt), 10)]
			if c.file.Format == "timed_trace" || c.file.Format == "burstgpt" {
				prompt = ""
			}
			got = append(got, fmt.Sprintf("%d+%d %s%s", r.InputTokens, r.OutputTokens, at,
				strings.TrimSpace(prompt)))
			if i > 0 && c.file.Format == "timed_trace" && r.Prompt[:40] != list[0].Prompt[:40] {
				t.Errorf("a hash is not the same words:\n%s\n%s", r.Prompt, list[0].Prompt)
			}
		}
		text := strings.Join(got, " | ")
		if err != nil {
			text = err.Error()
		}
		if err == nil && text != c.want || err != nil && !strings.Contains(text, c.want) {
			t.Errorf("%s: %s, not %s", c.name, text, c.want)
		}
	}
}

// Requests of a few beginnings share them, each as often as the others.
func TestPrefixes(t *testing.T) {
	count := map[string]int{}
	for _, r := range (Random{Input: 5, Output: 2, Prefix: 8, Prefixes: 4}).Requests(12, 1) {
		ids := token.Get().Encode(nil, r.Prompt)
		if len(ids) != 13 || r.InputTokens != 13 {
			t.Error(r)
		}
		count[fmt.Sprint(ids[:8])]++
	}
	for _, n := range count {
		if len(count) != 4 || n != 3 {
			t.Error(count)
		}
	}
}

func TestTimeline(t *testing.T) {
	began := time.Now()
	var b strings.Builder
	err := Timeline(&b, []Outcome{{Sent: began, TTFT: time.Second, Latency: 4 * time.Second,
		Gaps: []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, time.Second}}, {}},
		[]float64{25, 50})
	for _, want := range []string{`class="k0" style="left:0.000%;width:25.000%"`,
		`class="k1" style="left:25.000%;width:0.750%"`, `class="k3" style="left:25.750%;width:25`,
		"over 4.0 seconds", "below 25 ms"} {
		if err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%v: no %s in %s", err, want, b.String())
		}
	}
	if strings.Count(b.String(), `class="row"`) != 1 {
		t.Error(b.String())
	}
}
