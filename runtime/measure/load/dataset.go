// The requests' prompts: random words of an exact length, or the user's file of conversations; and
// the figures that the vLLM 0.10.1 benchmarks published for gpt-oss. They name no GPU.

package load

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/models/mapping"
)

// Random are lengths of random requests, in tokens.
type Random struct {
	Input, Output int
	// RangeRatio is vLLM's: each length is drawn from (1-r)·n to (1+r)·n, so 0 is exact.
	RangeRatio float64
	Prefix     int // tokens at the beginning that all requests share
}

// Requests makes n of them.
func (r Random) Requests(n int, seed uint64) []Request {
	random := rand.New(rand.NewPCG(seed, 1))
	shared := words(random, r.Prefix)
	list := make([]Request, n)
	for i := range list {
		input := r.Prefix + r.draw(random, r.Input)
		list[i] = Request{Prompt: shared + words(random, input-r.Prefix), InputTokens: input,
			OutputTokens: r.draw(random, r.Output)}
	}
	return list
}

func (r Random) draw(random *rand.Rand, n int) int {
	least := max(int(math.Floor(float64(n)*(1-r.RangeRatio))), 1)
	most := max(int(math.Ceil(float64(n)*(1+r.RangeRatio))), least)
	return least + random.IntN(most-least+1)
}

// words is a text of n tokens: words after a space, each of which is one token in any context,
// since the tokenizer cuts a text there.
func words(random *rand.Rand, n int) string {
	vocabulary := wordTokens()
	var b strings.Builder
	for range n {
		b.Write(token.Get().TokenBytes(vocabulary[random.IntN(len(vocabulary))]))
	}
	return b.String()
}

// wordTokens are the tokens of a space and small letters. A capital starts a new piece only after a
// small letter, so those are safe too, but not needed: there are 30,000 of these.
var wordTokens = sync.OnceValue(func() (list []int32) {
	for id := range token.StartOfText {
		word, spaced := strings.CutPrefix(string(token.Get().TokenBytes(id)), " ")
		if spaced && len(word) > 1 && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == "" {
			list = append(list, id)
		}
	}
	return list
})

// ShareGPT reads conversations in the format of that name and makes requests of n of them: the
// first message, and as many tokens as the second has, or output if that is above 0. Too short and
// too long ones are left out, as in vLLM and SGLang: below 4 tokens, prompts above 1,024, both
// together above 2,048.
func ShareGPT(file string, n, output int, seed uint64) ([]Request, error) {
	text, err := mapping.ReadText(file, mapping.MaxData)
	if err != nil {
		return nil, fmt.Errorf("read conversations: %w", err)
	}
	var talks []struct {
		Conversations []struct{ Value string }
	}
	if err := json.Unmarshal(text, &talks); err != nil {
		return nil, fmt.Errorf("%s does not hold ShareGPT's conversations: %w", file, err)
	}
	random := rand.New(rand.NewPCG(seed, 1))
	random.Shuffle(len(talks), func(i, j int) { talks[i], talks[j] = talks[j], talks[i] })
	var list []Request
	for _, t := range talks {
		if len(list) == n {
			break
		}
		if len(t.Conversations) < 2 {
			continue
		}
		r := Request{Prompt: t.Conversations[0].Value, OutputTokens: output}
		r.InputTokens = len(token.Get().Encode(nil, r.Prompt))
		if output <= 0 {
			r.OutputTokens = len(token.Get().Encode(nil, t.Conversations[1].Value))
		}
		if r.InputTokens < 4 || output <= 0 && r.OutputTokens < 4 || r.InputTokens > 1024 ||
			r.InputTokens+r.OutputTokens > 2048 {
			continue
		}
		list = append(list, r)
	}
	if len(list) < n {
		return nil, fmt.Errorf("%s has %d conversations of the right length, %d are asked for",
			file, len(list), n)
	}
	return list, nil
}

// Workload is a set of requests that was published with its results.
type Workload struct {
	Name    string
	Dataset string // random or sharegpt
	Random  Random
	Prompts int
	Most    int // concurrency; 0: no limit
}

// Workloads are those of the documents that this program is compared with. Their random lengths are
// exact. gpt-oss's vLLM guide has the first, the vLLM 0.10.1 benchmarks the four others.
var Workloads = []Workload{
	{Name: "guide", Dataset: "random", Random: Random{Input: 1024, Output: 1024}, Prompts: 5120,
		Most: 1024},
	{Name: "sharegpt", Dataset: "sharegpt", Prompts: 10000},
	{Name: "1024-1024", Dataset: "random", Random: Random{Input: 1024, Output: 1024},
		Prompts: 2000},
	{Name: "2000-6000", Dataset: "random", Random: Random{Input: 2000, Output: 6000},
		Prompts: 500},
	{Name: "6000-2000", Dataset: "random", Random: Random{Input: 6000, Output: 2000},
		Prompts: 500},
}

// PublishedSource is the source of the published figures.
const PublishedSource = "benchmarks of vLLM 0.10.1 (vllm/vllm-openai:v0.10.1), which name no GPU"

// publishedFigures are the columns of publishedRuns, by vLLM's names.
var publishedFigures = []string{
	"duration", "completed", "request_throughput", "input_throughput", "output_throughput",
	"mean_e2el_ms", "median_e2el_ms", "mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms",
	"mean_tpot_ms", "median_tpot_ms", "p99_tpot_ms", "mean_itl_ms", "median_itl_ms",
	"p99_itl_ms",
}

var publishedRuns = []struct {
	workload, name string
	figures        []float64
}{
	{"sharegpt", "vLLM 0.10.1 20b TP 1 (published)",
		[]float64{379.42, 10000, 26.36, 5876.78, 5164.10, 190588.37, 189943.47, 181443.13,
			181049.44, 359864.30, 48.21, 47.01, 90.54, 46.96, 37.35, 110.20}},
	{"1024-1024", "vLLM 0.10.1 20b TP 1 (published)",
		[]float64{441.31, 2000, 4.53, 4640.77, 4640.77, 253112.49, 239051.28, 199083.58,
			183767.53, 404096.66, 52.81, 54.01, 55.22, 52.94, 41.23, 136.31}},
	{"2000-6000", "vLLM 0.10.1 20b TP 1 (published)",
		[]float64{891.71, 500, 0.56, 1121.44, 3364.32, 669859.72, 485453.96, 236225.47,
			37242.17, 486426.06, 72.28, 73.30, 74.72, 72.56, 69.85, 178.58}},
	{"6000-2000", "vLLM 0.10.1 20b TP 1 (published)",
		[]float64{604.02, 500, 0.83, 4966.71, 1655.57, 473105.44, 454905.66, 220394.29,
			162918.45, 459071.82, 126.42, 137.92, 146.07, 127.55, 86.33, 279.93}},
	{"sharegpt", "vLLM 0.10.1 120b TP 2 (published)",
		[]float64{493.49, 10000, 20.26, 4518.39, 3970.44, 245212.92, 244736.09, 233288.58,
			233224.01, 465438.45, 62.35, 61.38, 107.51, 61.24, 50.35, 131.37}},
	{"1024-1024", "vLLM 0.10.1 120b TP 2 (published)",
		[]float64{544.87, 2000, 3.67, 3758.69, 3758.69, 308765.67, 290523.22, 242108.89,
			223256.94, 490674.40, 65.16, 65.98, 66.52, 65.29, 52.63, 153.59}},
	{"2000-6000", "vLLM 0.10.1 120b TP 2 (published)",
		[]float64{955.25, 500, 0.52, 1046.85, 3140.55, 716530.67, 518947.70, 252831.64,
			40690.75, 520688.03, 77.30, 78.33, 79.72, 77.91, 74.09, 191.69}},
	{"6000-2000", "vLLM 0.10.1 120b TP 2 (published)",
		[]float64{612.86, 500, 0.82, 4895.06, 1631.69, 476317.06, 453026.26, 220096.08,
			161133.91, 457142.02, 128.17, 138.67, 146.02, 128.78, 89.86, 264.07}},
}

// Published are the published runs of a workload.
func Published(workload string) (list []Saved) {
	for _, r := range publishedRuns {
		if r.workload != workload {
			continue
		}
		s := Saved{r.name, PublishedSource, map[string]float64{}}
		for i, v := range r.figures {
			s.Figures[publishedFigures[i]] = v
		}
		s.Figures["total_token_throughput"] = s.Figures["input_throughput"] +
			s.Figures["output_throughput"]
		list = append(list, s)
	}
	return list
}
