// Requests from a file of the user's, in the text formats that vLLM's benchmark reads.
//
// What must stay true: a file without the members of its format is an error that names the file and
// the member; the same file and seed make the same requests.

package load

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/models/mapping"
)

// File is a file of requests. Its zero values are vLLM's defaults, except Trace.
type File struct {
	Path         string
	Format       string // one of Formats
	Output       int    // tokens to ask for; 0: as the file or the format says
	Category     string // of SpecBench; "": all
	NoShuffle    bool
	NoOversample bool // fewer requests than asked for, rather than some again
	Trace        Trace
}

// Trace is how a timed trace is read.
type Trace struct {
	ChunkTokens                      int     // of one of Hashes
	Multiplier                       float64 // of timestamps, to seconds
	Timestamp, Input, Output, Hashes string  // members of a line
	Untimed                          bool    // requests follow the rate, not its timestamps
}

// Formats are the names of the formats. Of Hugging Face's datasets (hf) the file is JSON or JSON
// lines with a prompt, question, problem or instruction.
var Formats = []string{"sharegpt", "custom", "spec_bench", "hf", "timed_trace", "burstgpt"}

// talk is a conversation or question, with the members of all formats except traces.
type talk struct {
	Conversations                         []struct{ Value string }
	Turns                                 []string
	Category                              string
	Prompt                                json.RawMessage // a text, or MT-Bench's list of turns
	Question, Problem, Instruction, Input string
	OutputTokens                          *float64 `json:"output_tokens"`
}

func (f *File) Requests(n int, seed uint64) (list []Request, err error) {
	text, err := mapping.ReadText(f.Path, mapping.MaxData)
	if err != nil {
		return nil, fmt.Errorf("read requests: %w", err)
	}
	random := rand.New(rand.NewPCG(seed, 1))
	switch f.Format {
	case "burstgpt":
		list, err = f.burst(text, n, random)
	case "timed_trace":
		list, err = f.trace(text, n, seed)
	default:
		list, err = f.talks(text, n, random)
	}
	if err == nil && len(list) == 0 {
		err = errors.New("no question has the right length or category")
	}
	if err != nil {
		return nil, fmt.Errorf("%s does not hold requests in the format %s: %w", f.Path,
			f.Format, err)
	}
	for had := len(list); len(list) < n && !f.NoOversample && f.Format != "timed_trace"; {
		list = append(list, list[random.IntN(had)])
	}
	return list, nil
}

func (f *File) talks(text []byte, n int, random *rand.Rand) (list []Request, err error) {
	talks, err := readAll[talk](text)
	if err != nil {
		return nil, err
	}
	if !f.NoShuffle {
		random.Shuffle(len(talks), func(i, j int) { talks[i], talks[j] = talks[j], talks[i] })
	}
	for i := 0; i < len(talks) && len(list) < n; i++ {
		r, ok, err := f.request(&talks[i])
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, r)
		}
	}
	return list, nil
}

// readAll reads a JSON list, or one value after another.
func readAll[T any](text []byte) (list []T, err error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		err = json.Unmarshal(text, &list)
		return list, err
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var one T
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
}

// request is the conversation's, if it is of those to be sent. Of ShareGPT, too short and too long
// ones are left out, as in vLLM and SGLang: below 4 tokens, prompts above 1,024, both together
// above 2,048.
func (f *File) request(t *talk) (r Request, ok bool, err error) {
	tokens := func(text string) int { return len(token.Get().Encode(nil, text)) }
	if f.Format == "sharegpt" {
		if len(t.Conversations) < 2 {
			return r, false, nil
		}
		r.Prompt = t.Conversations[0].Value
		r.InputTokens = tokens(r.Prompt)
		r.OutputTokens = cmp.Or(f.Output, tokens(t.Conversations[1].Value))
		return r, r.InputTokens >= 4 && (f.Output > 0 || r.OutputTokens >= 4) &&
			r.InputTokens <= 1024 && r.InputTokens+r.OutputTokens <= 2048, nil
	}
	if f.Category != "" && t.Category != f.Category {
		return r, false, nil
	}
	var prompt string
	turns := t.Turns
	if json.Unmarshal(t.Prompt, &prompt) != nil && len(t.Prompt) > 0 &&
		json.Unmarshal(t.Prompt, &turns) != nil {
		return r, false, errors.New("a prompt is neither a text nor a list of texts")
	}
	if len(turns) > 0 {
		prompt = cmp.Or(prompt, turns[0])
	}
	if prompt == "" && t.Instruction != "" && t.Input != "" {
		prompt = t.Instruction + "\n" + t.Input
	}
	if r.Prompt = cmp.Or(prompt, t.Question, t.Problem, t.Instruction); r.Prompt == "" {
		return r, false, errors.New("a line has no prompt, turns, question, problem or instruction")
	}
	r.OutputTokens = cmp.Or(f.Output, 256)
	if f.Output < 0 {
		if t.OutputTokens == nil || !(*t.OutputTokens >= 1 && *t.OutputTokens < 1e9) {
			return r, false, errors.New("a line has no output_tokens of at least 1; give " +
				"--custom-output-len")
		}
		r.OutputTokens = int(*t.OutputTokens)
	}
	r.InputTokens = tokens(r.Prompt)
	return r, true, nil
}

// burst makes requests of BurstGPT's lengths: those of GPT-4 that were answered.
func (f *File) burst(text []byte, n int, random *rand.Rand) (list []Request, err error) {
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, cmp.Or(err, io.EOF)
	}
	if !f.NoShuffle && len(rows) > 1 {
		random.Shuffle(len(rows)-1, func(i, j int) { rows[i+1], rows[j+1] = rows[j+1], rows[i+1] })
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i + 1
	}
	columns := [3]int{column["Model"], column["Request tokens"], column["Response tokens"]}
	if min(columns[0], columns[1], columns[2]) == 0 {
		return nil, errors.New("its columns are not Model, Request tokens and Response tokens")
	}
	for _, row := range rows[1:] {
		input, _ := strconv.Atoi(row[columns[1]-1]) // 0: not a number
		output, _ := strconv.Atoi(row[columns[2]-1])
		if len(list) < n && row[columns[0]-1] == "GPT-4" && input > 0 && output > 0 {
			list = append(list, Random{Input: input, Output: output}.
				Requests(1, random.Uint64())...)
		}
	}
	return list, nil
}

// trace makes requests of a timed trace: a hash means the same ChunkTokens random words
// everywhere, so that requests share beginnings as the trace's did.
func (f *File) trace(text []byte, n int, seed uint64) (list []Request, err error) {
	lines, err := readAll[map[string]any](text)
	for _, line := range lines[:min(n, len(lines))] {
		var v [3]float64
		for i, name := range []string{f.Trace.Timestamp, f.Trace.Input, f.Trace.Output} {
			var ok bool
			if v[i], ok = line[name].(float64); !ok || !(v[i] >= 0 && v[i] < 1e12) {
				return nil, fmt.Errorf("a line has no %s of at least 0; --timed-trace-label-* "+
					"name its members", name)
			}
		}
		r := Request{OutputTokens: max(int(v[2]), 1)}
		if !f.Trace.Untimed {
			r.Due = time.Duration(v[0] * f.Trace.Multiplier * float64(time.Second))
		}
		hashes, _ := line[f.Trace.Hashes].([]any)
		for _, h := range hashes {
			tokens := min(f.Trace.ChunkTokens, int(v[1])-r.InputTokens)
			id := fnv.New64a()
			fmt.Fprint(id, h)
			r.Prompt += words(rand.New(rand.NewPCG(seed, id.Sum64())), max(tokens, 0))
			r.InputTokens += max(tokens, 0)
		}
		if r.InputTokens == 0 {
			return nil, fmt.Errorf("a line has no %s", f.Trace.Hashes)
		}
		list = append(list, r)
	}
	return list, err
}
