// Package eval grades a model behind any OpenAI port: questions with known answers, calls of tools,
// and what no client should ever see.
//
// It returns data and prints nothing. What must stay true: an attempt that has been graded is on
// disk before the next result is counted, so an interrupted run goes on where it was; what a
// server refuses is an attempt without an answer, not a wrong answer in silence; the same seed asks
// the same questions in the same words.
package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ossrun/ossrun/runtime/endpoint"
	"github.com/ossrun/ossrun/runtime/jsonlines"
)

// Attempt is one question asked once.
type Attempt struct {
	Eval     string `json:"eval"`
	Model    string `json:"model"`
	Effort   string `json:"effort"`
	Seed     uint64 `json:"seed"`
	Question string `json:"question"` // its ID
	Number   int    `json:"attempt"`
	Correct  bool   `json:"correct"`
	Given    string `json:"given"` // what was read as the answer; empty: none was found
	Wanted   string `json:"wanted"`
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

// Run is what is asked.
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

// Do asks what the journal does not have yet and returns all attempts of the run. When ctx ends it
// returns those that there are, and its error. An attempt without a reply is asked anew by the next
// run.
func (r *Run) Do(ctx context.Context) ([]Attempt, error) {
	journal, done, err := openJournal(r.Journal)
	if err != nil {
		return nil, err
	}
	type question struct {
		Attempt
		of *Question
	}
	var todo []question
	var list []Attempt
	for _, effort := range r.Efforts {
		for n := range r.Attempts {
			for i := range r.Questions {
				q := &r.Questions[i]
				a := Attempt{Eval: r.Eval, Model: r.Sampler.Model, Effort: effort, Seed: r.Seed,
					Question: q.ID, Number: n}
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
	var mu sync.Mutex
	each(ctx, len(todo), r.Threads, func(i int) {
		a := todo[i].Attempt
		r.ask(ctx, &a, todo[i].of)
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil && a.Error != "" {
			return // it was interrupted
		}
		if a.Error == "" && journal != nil {
			err = errors.Join(err, journal.Append(&a))
		}
		list = append(list, a)
		correct += one(a.Correct)
		if r.Progress != nil {
			r.Progress(len(list), total, correct)
		}
	})
	if journal != nil {
		err = errors.Join(err, journal.Close())
	}
	return list, errors.Join(err, ctx.Err())
}

// each calls do(0..n-1), threads of them at once, until ctx ends.
func each(ctx context.Context, n, threads int, do func(int)) {
	var running errgroup.Group
	running.SetLimit(max(threads, 1))
	for i := range n {
		running.Go(func() error {
			if ctx.Err() == nil {
				do(i)
			}
			return nil
		})
	}
	_ = running.Wait() // none fails
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

var patience = endpoint.Patience{Tries: 8, Pause: time.Second}

func (r *Run) ask(ctx context.Context, a *Attempt, q *Question) {
	text, wanted := q.ask(r.Seed, a.Number)
	began := time.Now()
	var t *turn
	err := patience.Do(ctx, func() (err error) {
		t, err = r.Sampler.request(ctx, firstInput(text), a.Effort, false)
		return err
	})
	a.Wanted, a.Seconds = wanted, time.Since(began).Seconds()
	if err != nil {
		a.Error = err.Error()
		return
	}
	a.Reply, a.OutputTokens, a.ReasoningTokens = t.text, t.used.output, t.used.reasoning
	a.Given = q.read(t.text)
	a.Correct = a.Given == wanted
}

// openJournal reads the attempts that a file has; without a name there is neither.
func openJournal(name string) (*jsonlines.File, map[string]Attempt, error) {
	done := map[string]Attempt{}
	if name == "" {
		return nil, done, nil
	}
	f, err := jsonlines.Open(name, func(line []byte) error {
		var a Attempt
		err := json.Unmarshal(line, &a)
		done[a.key()] = a
		return err
	})
	return f, done, err
}
