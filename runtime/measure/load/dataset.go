// The requests' prompts: random words of an exact length; and the figures that the vLLM 0.10.1
// benchmarks published for gpt-oss. They name no GPU.

package load

import (
	_ "embed"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/harmony/token"
)

// Random are lengths of random requests, in tokens.
type Random struct {
	Input, Output int
	// RangeRatio is vLLM's: each length is drawn from (1-r)·n to (1+r)·n, so 0 is exact.
	RangeRatio float64
	Prefix     int // tokens at the beginning that requests share
	Prefixes   int // how many such beginnings there are; 0: one
}

// Requests makes n of them.
func (r Random) Requests(n int, seed uint64) []Request {
	random := rand.New(rand.NewPCG(seed, 1))
	shared, prefixes := "", max(r.Prefixes, 1)
	list := make([]Request, n)
	for i := range list {
		if i == 0 || i*prefixes/n > (i-1)*prefixes/n {
			shared = words(random, r.Prefix)
		}
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

// Workload is a set of requests that was published with its results.
type Workload struct {
	Name    string
	Dataset string // random or sharegpt
	Random  Random
	Prompts int
	Most    int // concurrency; 0: no limit
}

// published is published.json: workloads, and the results of runs by the names of figures.
var published = func() (p struct {
	Figures   []string
	Workloads []Workload
	Runs      []struct {
		Workload, Name string
		Figures        []float64
	}
}) {
	if err := json.Unmarshal(publishedText, &p); err != nil {
		panic("published.json: " + err.Error()) // every test reads it
	}
	return p
}()

//go:embed published.json
var publishedText []byte

// Workloads are those of the documents that this program is compared with. Their random lengths are
// exact. gpt-oss's vLLM guide has the first, the vLLM 0.10.1 benchmarks the four others.
var Workloads = published.Workloads

// PublishedSource is the source of the published figures.
const PublishedSource = "benchmarks of vLLM 0.10.1 (vllm/vllm-openai:v0.10.1), which name no GPU"

func Published(workload string) (list []Saved) {
	for _, r := range published.Runs {
		if r.Workload != workload {
			continue
		}
		s := Saved{r.Name, PublishedSource, map[string]float64{}}
		for i, v := range r.Figures {
			s.Figures[published.Figures[i]] = v
		}
		s.Figures["total_token_throughput"] = s.Figures["input_throughput"] +
			s.Figures["output_throughput"]
		list = append(list, s)
	}
	return list
}
