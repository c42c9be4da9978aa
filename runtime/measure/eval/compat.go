// Checks a server's tool calls: the thirty tasks, over both APIs, streamed or not; and counts the
// faults that no client should see.

package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ossrun/ossrun/runtime/measure/jsonlines"
	"github.com/ossrun/ossrun/runtime/remote/client"
)

// CompatRow is one API, streamed or not.
type CompatRow struct {
	API     API  `json:"api"`
	Stream  bool `json:"stream"`
	Tasks   int  `json:"tasks"`
	Runs    int  `json:"runs"` // tasks times k
	Passed  int  `json:"passed"`
	Invalid int  `json:"invalid"` // runs in which the server refused a request
	// PassAtK is the share of tasks that at least one of k runs passed, PassAllK that all did
	PassAtK  float64        `json:"pass_at_k"`
	PassAllK float64        `json:"pass_all_k"`
	Why      map[string]int `json:"why"` // why runs did not pass
}

// Compat runs every task k times over one API.
func Compat(ctx context.Context, s Sampler, stream bool, k, threads int,
	progress func()) CompatRow {
	tasks := cases().Tasks
	row := CompatRow{API: s.API, Stream: stream, Tasks: len(tasks), Runs: k * len(tasks),
		Why: map[string]int{}}
	passed := make([]int, len(tasks))
	_ = jsonlines.ForEach(ctx, row.Runs, threads, func(ctx context.Context, n int) func() error {
		why, invalid := s.compat(ctx, &tasks[n%len(tasks)], stream)
		return func() error { // none fails
			if why == "" {
				row.Passed++
				passed[n%len(tasks)]++
			} else {
				row.Why[why]++
			}
			row.Invalid += one(invalid)
			progress()
			return nil
		}
	})
	for _, n := range passed {
		row.PassAtK += float64(one(n > 0)) / float64(len(tasks))
		row.PassAllK += float64(one(n == k)) / float64(len(tasks))
	}
	return row
}

// compat runs one task: a call, its result, an answer. It returns why that did not pass.
func (s *Sampler) compat(ctx context.Context, k *task, stream bool) (why string, invalid bool) {
	input := firstInput(k.Text)
	first, err := s.take(ctx, input, stream)
	if err != nil {
		return "the first request: " + err.Error(), refused(err)
	}
	switch {
	case len(first.faults) > 0:
		return first.faults[0], false
	case first.cut:
		return "the limit of tokens came first", false
	case first.reasoning == "":
		return "no reasoning came with the first turn", false
	case len(first.calls) == 0:
		return "no tool was called", false
	}
	index := slices.IndexFunc(first.calls, func(c client.Call) bool {
		return c.Function.Name == k.Tool
	})
	if index < 0 {
		return "another tool was called", false
	}
	if why := k.judge(first.calls[index].Function.Arguments); why != "" {
		return why, false
	}
	second, err := s.take(ctx, slices.Concat(input, first.items, s.results(first)), stream)
	if err != nil {
		return "the second request: " + err.Error(), refused(err)
	}
	if len(second.faults) > 0 {
		return "the second turn: " + second.faults[0], false
	}
	return "", false
}

// judge checks arguments against the tool's schema and the task's expected values.
func (k *task) judge(arguments string) string {
	var values map[string]any
	if json.Unmarshal([]byte(arguments), &values) != nil {
		return "arguments that are not a JSON object"
	}
	for _, o := range cases().Tools {
		if o.Name != k.Tool {
			continue
		}
		var schema jsonschema.Schema
		var resolved *jsonschema.Resolved
		err := json.Unmarshal(o.Parameters, &schema)
		if err == nil {
			resolved, err = schema.Resolve(nil)
		}
		if err == nil {
			err = resolved.Validate(values)
		}
		if err != nil {
			return "arguments that break the schema: " + err.Error()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.Expected)) {
		if !sameValue(values[name], k.Expected[name]) {
			return fmt.Sprintf("another argument than was asked for: %s", name)
		}
	}
	return ""
}

// sameValue compares values as a person would.
func sameValue(got, want any) bool {
	switch w := want.(type) {
	case string:
		g, ok := got.(string)
		return ok && strings.EqualFold(strings.TrimSpace(g), w)
	case map[string]any:
		g, ok := got.(map[string]any)
		for name := range w {
			ok = ok && sameValue(g[name], w[name])
		}
		return ok
	}
	return reflect.DeepEqual(got, want)
}

// Faults are those that clients saw in a number of turns.
type Faults struct {
	Turns    int            `json:"turns"`
	Faulty   int            `json:"faulty"`
	PerMille float64        `json:"faulty_per_1000_turns"`
	Failed   int            `json:"failed"` // requests without an answer
	Why      map[string]int `json:"why"`
}

// CountFaults takes turns over the thirty tasks.
func CountFaults(ctx context.Context, s Sampler, stream bool, turns, threads int,
	progress func()) Faults {
	f, tasks := Faults{Why: map[string]int{}}, cases().Tasks
	_ = jsonlines.ForEach(ctx, turns, threads, func(ctx context.Context, n int) func() error {
		t, err := s.take(ctx, firstInput(tasks[n%len(tasks)].Text), stream)
		if ctx.Err() != nil {
			return nil
		}
		return func() error { // none fails
			if err != nil {
				f.Failed++
				f.Why[err.Error()]++
			} else {
				f.Turns++
				f.Faulty += one(len(t.faults) > 0)
				for _, fault := range t.faults {
					f.Why[fault]++
				}
			}
			progress()
			return nil
		}
	})
	if f.Turns > 0 {
		f.PerMille = 1000 * float64(f.Faulty) / float64(f.Turns)
	}
	return f
}
