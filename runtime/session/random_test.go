// Ten thousand turns of a model that writes at random, through the scheduler and the session:
// whatever it samples is legal Harmony, an answer or a call, and valid where a schema was asked
// for.

package session

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
)

// randomDevice has 2 % of its mass on each of the tokens that end a message, of which one at most
// is allowed at a time, and 2 % on what documents and headers are made of.
func randomDevice() *enginetest.Random {
	structure := []int32{token.Channel, token.Message, token.Constrain, token.Start}
	for _, s := range []string{`"`, `"}`, `}`, `]`, `":"`, `","`, `"]`, `,`, `:`, "final",
		"analysis", "commentary", "json", "1", " to", "=", "]}", `"}]`, `}}`} {
		structure = append(structure, token.Get().Encode(nil, s)...)
	}
	likely := []enginetest.Likely{{IDs: structure, Mass: 0.02}}
	for _, id := range []int32{token.End, token.Return, token.Call} {
		likely = append(likely, enginetest.Likely{IDs: []int32{id}, Mass: 0.02})
	}
	return enginetest.NewRandom(enginetest.RandomOptions{Vocab: token.VocabSize, Seed: 5,
		Likely: likely})
}

const (
	orderSchema = `{"type":"object","properties":{"id":{"type":"string","pattern":"^[A-Z]{2}-[0-9]{3}$"},"lines":{"type":"array","items":{"$ref":"#/$defs/line"},"minItems":1,"maxItems":3},"note":{"type":["string","null"],"maxLength":20}},"required":["id","lines","note"],"additionalProperties":false,"$defs":{"line":{"type":"object","properties":{"sku":{"enum":["a","b","c"]},"count":{"type":"integer","minimum":1,"maximum":99}},"required":["sku","count"],"additionalProperties":false}}}`
	citySchema  = `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":14}},"required":["city"],"additionalProperties":false}`
	anySchema   = `{"type":"object"}`
	// cannot be held: any JSON object
	oddSchema    = `{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`
	answerSchema = `{"type":"object","properties":{"ok":{"type":"boolean"},"reason":{"anyOf":[{"type":"string","format":"date"},{"type":"number","minimum":-5,"maximum":5}]}},"required":["ok","reason"],"additionalProperties":false}`
	treeSchema   = `{"type":"object","properties":{"name":{"type":"string","maxLength":12},"children":{"type":"array","items":{"$ref":"#"},"maxItems":2}},"required":["name","children"],"additionalProperties":false}`
)

// randomCase is one kind of request; final is the schema of its answer, or an expression after a
// slash.
type randomCase struct {
	name  string
	final string
	r     Request
}

func randomMix(t testing.TB) []randomCase {
	final := func(raw string) *grammar.Grammar {
		return hosttest.Must(schema.Compile(t.Context(), []byte(raw), false))(t)
	}
	expression := `(yes|no), [0-9]{1,3} (cats|dogs)`
	regex := hosttest.Must(grammar.Regex(expression))(t)
	written := hosttest.Must(grammar.Rules("start: (\"yes\" | \"no\") \", \" /[0-9]{1,3}/ \" \" " +
		"animal\nanimal: \"cats\" | \"dogs\""))(t)
	tools := []harmony.ToolDescription{
		{Name: "get_weather", Parameters: json.RawMessage(citySchema)},
		{Name: "order", Parameters: json.RawMessage(orderSchema)},
		{Name: "anything", Parameters: json.RawMessage(anySchema)},
		{Name: "odd", Parameters: json.RawMessage(oddSchema)},
		{Name: "bare"},
	}
	return []randomCase{
		{name: "nothing asked"},
		{name: "tools", r: Request{Functions: tools}},
		{name: "required", r: Request{Functions: tools, ToolChoice: grammar.Required}},
		{name: "named", r: Request{Functions: tools, ToolChoice: grammar.Named, ToolName: "order"}},
		{name: "none", final: answerSchema, r: Request{Functions: tools, ToolChoice: grammar.None,
			Final: final(answerSchema)}},
		{name: "tools and schema", final: treeSchema, r: Request{Functions: tools,
			Final: final(treeSchema), Python: true, Browser: true}},
		{name: "object, bounded reasoning", final: anySchema,
			r: Request{Final: schema.AnyObject(), MaxReasoning: 20}},
		{name: "required, no reasoning", r: Request{Functions: tools, Python: true, Browser: true,
			ToolChoice: grammar.Required, MaxReasoning: -1}},
		{name: "schema, little reasoning", final: orderSchema, r: Request{Final: final(orderSchema),
			MaxReasoning: 5}},
		{name: "expression", final: "/" + expression, r: Request{Final: regex}},
		{name: "rules", final: "/" + expression, r: Request{Final: written, MaxReasoning: 1}},
	}
}

// randomOutcome counts the results of the turns.
type randomOutcome struct {
	mu                       sync.Mutex
	ended, cut, calls, final int
	tokens                   int
	texts                    map[string][]string // of a schema
	ids                      [][]int32
}

// A part of the long run by itself, or one turn of it again: -random.first 4711 -random.turns 1.
var (
	randomFirst = flag.Int("random.first", 0, "number of the first random turn")
	randomTurns = flag.Int("random.turns", 66, "how many random turns; OSSRUN_LONG makes it 10,000")
)

var specialName = regexp.MustCompile(
	`<\|(start|end|message|channel|constrain|return|call|endoftext|startoftext|endofprompt|reserved_\d+)\|>`)

// onDemo is a model of the demo's shape on a device, with room for four sequences of the longest
// context.
func onDemo(t *testing.T, dev engine.Device, longest int) *Model {
	t.Helper()
	ckpt := hosttest.Must(checkpoint.OpenDemo())(t)
	const rows, seqs = 512, 256
	pages := 4 * kv.PagesOf(longest, rows, ckpt.Spec.Window, 1)
	eng, err := engine.New(dev, ckpt, engine.Settings{Pages: pages, MaxNumBatchedTokens: rows,
		MaxNumSeqs: seqs, MaxLogits: seqs})
	hosttest.Check(t, err)
	m := New(eng, Options{ID: "demo", Scheduler: sched.Options{Settings: engine.Settings{
		Pages: pages, MaxModelLen: longest}}})
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), eng.Close(), ckpt.Close(), dev.Close()); err != nil {
			t.Error(err)
		}
	})
	return m
}

func TestRandomTurns(t *testing.T) {
	turns, most := *randomTurns, 200
	if os.Getenv("OSSRUN_LONG") != "" && turns == 66 {
		turns = 10_000
	}
	if testing.Short() { // under the race detector: each case once
		turns = min(turns, 11)
	}
	m := onDemo(t, randomDevice(), 4096)
	mix, out := randomMix(t), &randomOutcome{texts: map[string][]string{}}
	next := make(chan int)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := range next {
				c := mix[i%len(mix)]
				if problem := out.turn(m, c, i, most); problem != "" {
					t.Errorf("turn %d, %s: %s", i, c.name, problem)
				}
			}
		})
	}
	for i := *randomFirst; i < *randomFirst+turns && !t.Failed(); i++ {
		next <- i
	}
	close(next)
	workers.Wait()
	t.Logf("%d turns of %d tokens in all: %d ended by themselves, %d were cut by the limit and "+
		"say length; %d calls, %d structured answers",
		turns, out.tokens, out.ended, out.cut, out.calls, out.final)
	if turns >= 66 && (out.ended < turns/3 || out.calls == 0 || out.final == 0) {
		t.Error("too few turns ended to tell anything")
	}
	out.judge(t)
}

// turn plays one turn and returns its fault.
func (o *randomOutcome) turn(m *Model, c randomCase, i, most int) string {
	r := c.r
	r.Messages, r.MaxTokens, r.Params = []Message{User("Say something.")}, most, sample.Defaults()
	r.Params.Seed = uint64(i)
	turn, err := m.Start(context.Background(), r)
	if err != nil {
		return err.Error()
	}
	ends := 0
	for e, ok := turn.Next(); ok; e, ok = turn.Next() {
		if text := fmt.Sprintf("%+v", e); specialName.MatchString(text) {
			return "a special token is shown: " + text
		}
		if _, ok := e.(CallEnd); ok {
			ends++
		}
	}
	res := turn.Result()
	if n := res.Done.Faults; n.Total() > 0 {
		return fmt.Sprintf("faults %v in %q", n, token.Get().Decode(nil, res.Tokens))
	}
	if ends != len(res.Calls) {
		return fmt.Sprintf("%d calls, %d of them ended", len(res.Calls), ends)
	}
	if problem := o.note(c, res); problem != "" {
		return fmt.Sprintf("%s in %q", problem, token.Get().Decode(nil, res.Tokens))
	}
	return ""
}

// note holds a finished turn to its request and keeps its documents for the judges.
func (o *randomOutcome) note(c randomCase, res Result) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tokens += len(res.Tokens)
	o.calls += len(res.Calls)
	for _, call := range res.Calls {
		if problem := o.noteCall(c, call); problem != "" {
			return problem
		}
	}
	switch {
	case res.Done.Finish == FinishLength:
		o.cut++
		return ""
	case res.Done.Finish != FinishStop && res.Done.Finish != FinishToolCalls:
		return fmt.Sprintf("the turn ended by %s, %v", res.Done.Finish, res.Done.Err)
	case res.Answer == "" && len(res.Calls) == 0:
		return "the answer is empty"
	case (c.r.ToolChoice == grammar.Required || c.r.ToolChoice == grammar.Named) &&
		len(res.Calls) == 0:
		return "the call that was demanded is missing"
	}
	if _, err := harmony.ReadLegal(res.Tokens, harmony.RoleAssistant); err != nil {
		return err.Error()
	}
	o.ended++
	o.ids = append(o.ids, res.Tokens)
	if expression, ok := strings.CutPrefix(c.final, "/"); ok && len(res.Calls) == 0 {
		o.final++
		if !regexp.MustCompile("^(" + expression + ")$").MatchString(res.Answer) {
			return fmt.Sprintf("%q is not %s", res.Answer, expression)
		}
	} else if c.final != "" && len(res.Calls) == 0 {
		o.final++
		o.texts[c.final] = append(o.texts[c.final], res.Answer)
	}
	return ""
}

func (o *randomOutcome) noteCall(c randomCase, call Call) string {
	schema := anySchema
	name, function := strings.CutPrefix(call.Recipient, "functions.")
	switch {
	case call.Recipient == "python" && c.r.Python:
		return ""
	case strings.HasPrefix(call.Recipient, "browser.") && c.r.Browser:
	case !function || c.r.ToolChoice == grammar.None || c.r.ToolChoice == grammar.Named &&
		name != c.r.ToolName:
		return "a call of " + call.Recipient
	default:
		found := false
		for _, f := range c.r.Functions {
			if f.Name == name {
				found = true
				if len(f.Parameters) > 0 && name != "odd" {
					schema = string(f.Parameters)
				}
			}
		}
		if !found {
			return "a call of " + call.Recipient
		}
	}
	o.texts[schema] = append(o.texts[schema], call.Arguments)
	if !json.Valid([]byte(call.Arguments)) {
		return call.Arguments + " is no JSON"
	}
	return ""
}

// judge asks Python, if its packages are installed: jsonschema for every document, openai-harmony
// for every turn.
func (o *randomOutcome) judge(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Log("no python3: the turns were judged by this program alone")
		return
	}
	ask := func(script, name string, lines []any) {
		path := filepath.Join(t.TempDir(), name+".jsonl")
		f := hosttest.Must(os.Create(path))(t)
		w := bufio.NewWriter(f)
		enc := json.NewEncoder(w)
		for _, l := range lines {
			hosttest.Check(t, enc.Encode(l))
		}
		hosttest.Check(t, w.Flush())
		hosttest.Check(t, f.Close())
		answer, err := exec.Command(python, script, path).CombinedOutput()
		if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 3 {
			t.Logf("python3 has no %s: it was not asked", name)
			return
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, answer)
		}
		t.Logf("%s: %s", name, strings.TrimSpace(string(answer)))
	}
	lines := []any{[]string{"date"}}
	for schema, texts := range o.texts {
		lines = append(lines, map[string]any{"schema": json.RawMessage(schema), "texts": texts})
	}
	ask("../grammar/schema/testdata/verify_walks.py", "jsonschema", lines)

	ranks := filepath.Join(t.TempDir(), "o200k_base.tiktoken")
	hosttest.Check(t, writeRanks(ranks))
	lines = []any{ranks}
	for _, ids := range o.ids {
		lines = append(lines, ids)
	}
	ask("testdata/verify_turns.py", "openai_harmony", lines)
}

// writeRanks writes the vocabulary in the form in which openai-harmony reads it.
func writeRanks(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for id := range token.StartOfText {
		fmt.Fprintf(w, "%s %d\n", base64.StdEncoding.EncodeToString(token.Get().TokenBytes(id)), id)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
