// Package eval grades a model on any OpenAI port: questions with known answers, calls of tools, and
// faults that no client should see.
//
// It returns data and prints nothing. What must stay true: a graded attempt is on disk before the
// next result is counted, so an interrupted run can resume; a refused request is an attempt without
// an answer, not a wrong answer; the same seed asks the same questions in the same words.
package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ossrun/ossrun/runtime/measure/jsonlines"
	"github.com/ossrun/ossrun/runtime/remote/client"
)

// version is of the lines of a journal; those of the releases before versions have none.
const version = 1

// Attempt is one question asked once.
type Attempt struct {
	Version  int    `json:"version"`
	Eval     string `json:"eval"`
	Model    string `json:"model"`
	Effort   string `json:"effort"`
	Seed     uint64 `json:"seed"`
	Question string `json:"question"` // its ID
	Number   int    `json:"attempt"`
	Correct  bool   `json:"correct"`
	Answer   string `json:"given"` // parsed from the reply; empty: none
	Expected string `json:"wanted"`
	Error    string `json:"error,omitempty"` // why there is no reply
	Reply    string `json:"reply"`

	OutputTokens    int     `json:"output_tokens"`
	ReasoningTokens int     `json:"reasoning_tokens"`
	Seconds         float64 `json:"seconds"`
}

func (a *Attempt) key() string {
	return fmt.Sprint(a.Eval, "\x00", a.Model, "\x00", a.Effort, "\x00", a.Seed, "\x00", a.Question,
		"\x00", a.Number)
}

type Run struct {
	Eval      string // gpqa or aime25
	Questions []Question
	Efforts   []string
	Attempts  int // of each question at each effort
	Threads   int // requests at once
	Seed      uint64
	Sampler   Sampler
	Journal   string // the file of attempts; empty: none, nothing can be resumed
	Progress  func(done, total, correct int)
}

// Do asks the questions that the journal lacks and returns all attempts of the run. When ctx ends
// it returns those so far, and its error. The next run repeats attempts without a reply.
func (r *Run) Do(ctx context.Context) ([]Attempt, error) {
	journal, done, err := openJournal(r.Journal)
	if err != nil {
		return nil, err
	}
	type question struct {
		Attempt
		question *Question
	}
	var todo []question
	var list []Attempt
	for _, effort := range r.Efforts {
		for n := range r.Attempts {
			for i := range r.Questions {
				q := &r.Questions[i]
				a := Attempt{Version: version, Eval: r.Eval, Model: r.Sampler.Model,
					Effort: effort, Seed: r.Seed, Question: q.ID, Number: n}
				if old, ok := done[a.key()]; ok {
					list = append(list, old)
				} else {
					todo = append(todo, question{a, q})
				}
			}
		}
	}
	total, correct := len(list)+len(todo), 0
	for _, a := range list {
		correct += one(a.Correct)
	}
	err = jsonlines.ForEach(ctx, len(todo), r.Threads, func(ctx context.Context,
		i int) func() error {
		a := todo[i].Attempt
		r.ask(ctx, &a, todo[i].question)
		if ctx.Err() != nil && a.Error != "" {
			return nil // it was interrupted
		}
		return func() error {
			if a.Error == "" && journal != nil {
				if err := journal.Append(&a); err != nil {
					return err
				}
			}
			list = append(list, a)
			correct += one(a.Correct)
			if r.Progress != nil {
				r.Progress(len(list), total, correct)
			}
			return nil
		}
	})
	if journal != nil {
		err = errors.Join(err, journal.Close())
	}
	return list, errors.Join(err, ctx.Err())
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

var patience = client.RetryPolicy{Attempts: 8, Pause: time.Second}

func (r *Run) ask(ctx context.Context, a *Attempt, q *Question) {
	text, expected := q.ask(r.Seed, a.Number)
	began := time.Now()
	var t *turn
	err := patience.Do(ctx, func() (err error) {
		t, err = r.Sampler.request(ctx, firstInput(text), a.Effort, false)
		return err
	})
	a.Expected, a.Seconds = expected, time.Since(began).Seconds()
	if err != nil {
		a.Error = err.Error()
		return
	}
	a.Reply, a.OutputTokens, a.ReasoningTokens = t.text, t.used.output, t.used.reasoning
	a.Answer = q.read(t.text)
	a.Correct = a.Answer == expected
}

// openJournal reads a file's attempts; without a name there is no journal.
func openJournal(name string) (*jsonlines.File, map[string]Attempt, error) {
	done := map[string]Attempt{}
	if name == "" {
		return nil, done, nil
	}
	f, err := jsonlines.Open(name, func(line []byte) error {
		var a Attempt
		err := json.Unmarshal(line, &a)
		if a.Version > version {
			err = fmt.Errorf("a newer ossrun wrote it, in version %d, and this one knows version "+
				"%d", a.Version, version)
		}
		done[a.key()] = a
		return err
	})
	return f, done, err
}

type Score struct {
	Effort    string  `json:"effort"`
	Questions int     `json:"questions"`
	Attempts  int     `json:"attempts"` // with a reply
	Correct   int     `json:"correct"`
	Failed    int     `json:"failed"`    // without one: they are in no figure
	NoAnswer  int     `json:"no_answer"` // replies without a recognised answer: they count as wrong
	Percent   float64 `json:"percent"`
	// HalfWidth is half of the 95 % confidence interval, in percent points: 1.96 standard errors of
	// the mean over the questions, since attempts at one question are not independent
	HalfWidth float64 `json:"half_width"`
	// means of a reply
	OutputTokens    float64 `json:"mean_output_tokens"`
	ReasoningTokens float64 `json:"mean_reasoning_tokens"`
	Seconds         float64 `json:"mean_seconds"`
}

// Scores are those of the efforts, in their order.
func Scores(efforts []string, attempts []Attempt) []Score {
	var list []Score
	for _, effort := range efforts {
		list = append(list, score(effort, attempts))
	}
	return list
}

func score(effort string, attempts []Attempt) Score {
	s := Score{Effort: effort}
	right, total := map[string]float64{}, map[string]float64{}
	for _, a := range attempts {
		if a.Effort != effort {
			continue
		}
		if a.Error != "" {
			s.Failed++
			continue
		}
		s.Attempts++
		s.Correct += one(a.Correct)
		s.NoAnswer += one(a.Answer == "")
		s.OutputTokens += float64(a.OutputTokens)
		s.ReasoningTokens += float64(a.ReasoningTokens)
		s.Seconds += a.Seconds
		total[a.Question]++
		right[a.Question] += float64(one(a.Correct))
	}
	s.Questions = len(total)
	if s.Attempts == 0 {
		return s
	}
	n := float64(s.Attempts)
	s.OutputTokens /= n
	s.ReasoningTokens /= n
	s.Seconds /= n
	var means []float64
	for q := range total {
		means = append(means, 100*right[q]/total[q])
	}
	slices.Sort(means) // so that the sums are the same whatever the map's order
	s.Percent = 100 * float64(s.Correct) / n
	s.HalfWidth = 1.96 * standardError(means)
	return s
}

func standardError(values []float64) float64 {
	n := float64(len(values))
	if n < 2 {
		return 0
	}
	mean, squares := 0.0, 0.0
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares / (n - 1) / n)
}

// Sources are the addresses that OpenAI's gpt_oss.evals reads each eval's questions from.
var Sources = map[string]string{
	GPQA: "https://openaipublic.blob.core.windows.net/simple-evals/gpqa_diamond.csv",
	AIME25: "https://huggingface.co/datasets/opencompass/AIME2025/raw/main/aime2025-I.jsonl " +
		"https://huggingface.co/datasets/opencompass/AIME2025/raw/main/aime2025-II.jsonl",
}

// MLPerf are the marks of MLPerf Inference for 120b.
const MLPerf = "MLPerf: 83.1 over AIME, GPQA and LiveCodeBench together (high, 32,768 tokens); " +
	"GPQA passes at 60.7 (high, 10,240 tokens)"

// Published are the scores of the gpt-oss guide for vLLM, without tools, in percent: by model (20b,
// 120b), eval and effort.
var Published = map[string]map[string]map[string]float64{
	"120b": {GPQA: {"low": 65.3, "medium": 72.4, "high": 79.4},
		AIME25: {"low": 51.2, "medium": 79.6, "high": 93.0}},
	"20b": {GPQA: {"low": 56.8, "medium": 67.5, "high": 70.9},
		AIME25: {"low": 38.8, "medium": 75.0, "high": 85.8}},
}
