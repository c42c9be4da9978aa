package pool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
	"github.com/ossrun/ossrun/runtime/openai/scripttest"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a server with vLLM's /v1/completions over the scripted model.
type fake struct {
	*httptest.Server
	old   bool   // as before 0.10.2: no return_token_ids
	rules string // "": it samples under them, or it has ignored or refused them
	fails int    // the status of a refusal; 0: 400
	sched *sched.Scheduler

	mu    sync.Mutex
	seen  []asked
	down  bool      // every route answers 500
	busy  int       // so many completions get 429
	held  chan bool // the first completion waits for it
	left  bool      // and its client did not
	spoil func(tokens int) string
}

// asked is what the fake reads of a request.
type asked struct {
	Model     string
	Prompt    []int32
	Max       int `json:"max_tokens"`
	Stream    bool
	Stop      []int32 `json:"stop_token_ids"`
	Only      []int32 `json:"allowed_token_ids"`
	IgnoreEOS bool    `json:"ignore_eos"`
	MinTokens int     `json:"min_tokens"`
	Logprobs  *int
	AsIDs     bool `json:"return_tokens_as_token_ids"`
	Return    bool `json:"return_token_ids"`
	Special   *bool
	Score     *int               `json:"prompt_logprobs"`
	Bias      map[string]float32 `json:"logit_bias"`
	Salt      string             `json:"cache_salt"`

	Structured struct{ Grammar string } `json:"structured_outputs"`
}

func newFake(t *testing.T) *fake {
	t.Helper()
	s := engine.Settings{Pages: 2000, MaxNumBatchedTokens: 8192, MaxNumSeqs: 256,
		MaxModelLen: 16384, KVCacheDtype: "bf16"}
	f := &fake{sched: sched.New(scripttest.NewEngine(s, 0), sched.Options{Settings: s})}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.Server.CloseClientConnections()
		f.Server.Close()
		if err := f.sched.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// set changes how the fake behaves.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) requests() []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	down := f.down
	f.mu.Unlock()
	switch {
	case down:
		http.Error(w, "down", http.StatusInternalServerError)
	case r.URL.Path == "/health":
	case r.URL.Path == "/v1/models":
		fmt.Fprint(w, `{"data":[{"id":"other","max_model_len":9},`+
			`{"id":"openai/gpt-oss-20b","max_model_len":16384}]}`)
	case r.URL.Path == "/v1/completions":
		f.complete(w, r)
	default:
		http.NotFound(w, r)
	}
}

// except is a constraint without one more token.
type except struct {
	grammar.Constraint // nil: all tokens
	id                 int32
}

func (e except) Accept(id int32) bool { return e.Constraint == nil || e.Constraint.Accept(id) }
func (e except) Forced() []int32      { return nil }

// ruled is a text under rules, which any of the stops may end.
type ruled struct {
	grammar.Constraint
	stops []int32
}

func (r ruled) Mask() []uint64 {
	mask := slices.Clone(r.Constraint.Mask())
	for _, id := range r.stops {
		if automaton.Allows(mask, token.Return) {
			automaton.Allow(mask, id)
		}
	}
	return mask
}

func (e except) Mask() []uint64 {
	mask := slices.Repeat([]uint64{1<<64 - 1}, 201088/64)
	if e.Constraint != nil {
		mask = slices.Clone(e.Constraint.Mask())
	}
	mask[e.id/64] &^= 1 << (e.id % 64)
	return mask
}

func (f *fake) complete(w http.ResponseWriter, r *http.Request) {
	var q asked
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.seen = append(f.seen, q)
	busy := f.busy > 0 && q.Stream
	if busy {
		f.busy--
	}
	spoil, held := f.spoil, f.held
	f.held = nil
	f.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
			f.set(func() { f.left = true })
		}
	}
	if busy {
		w.Header().Set("Retry-After", "7")
		http.Error(w, `{"error":{"message":"full"}}`, http.StatusTooManyRequests)
		return
	}
	if q.Score != nil {
		f.score(w, q)
		return
	}
	one := sched.TokenRequest{Prompt: q.Prompt, Params: sample.Params{Logprobs: -1,
		IgnoreEOS: q.IgnoreEOS, MinTokens: q.MinTokens}, MaxTokens: q.Max,
		Stop: append([]int32{200002, 199999, 200012}, q.Stop...)}
	if q.Logprobs != nil {
		one.Params.Logprobs = *q.Logprobs
	}
	if q.Only != nil {
		one.Constraint = grammar.NewAllowed(q.Only)
	}
	if rules := q.Structured.Grammar; rules != "" && f.rules != "ignored" {
		g, err := grammar.Rules(rules)
		if err != nil || f.rules == "refused" {
			http.Error(w, fmt.Sprint("Invalid grammar specification: ", err), cmp.Or(f.fails, 400))
			return
		}
		one.Constraint = ruled{grammar.NewText(g), q.Stop}
	}
	for id, by := range q.Bias {
		if by != -100 {
			http.Error(w, "a bias of something else than a ban", http.StatusBadRequest)
			return
		}
		n, _ := strconv.Atoi(id)
		banned := one.Constraint
		one.Constraint = except{banned, int32(n)}
	}
	stream, err := f.sched.Submit(r.Context(), one)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"object":"error","message":%q,"code":400}`, err)
		return
	}
	var tokens []sched.Token
	send := func(t []sched.Token, finish any) {
		c := map[string]any{"index": 0, "text": "", "finish_reason": finish, "stop_reason": nil}
		var ids []int32
		names, logprobs, top := []string{}, []float32{}, []map[string]float32{}
		for _, one := range t {
			ids = append(ids, one.ID)
			names = append(names, fmt.Sprint("token_id:", one.ID))
			logprobs = append(logprobs, one.Logprob)
			rivals := map[string]float32{}
			for _, r := range one.Top {
				rivals[fmt.Sprint("token_id:", r.ID)] = r.Logprob
			}
			top = append(top, rivals)
		}
		if q.Return && !f.old {
			c["token_ids"] = ids
		}
		if q.Logprobs != nil && q.AsIDs {
			c["logprobs"] = map[string]any{"tokens": names, "token_logprobs": logprobs,
				"top_logprobs": top}
		}
		data, _ := json.Marshal(map[string]any{"choices": []any{c}})
		if q.Stream {
			fmt.Fprintf(w, "data: %s\n\n", data)
			w.(http.Flusher).Flush()
		} else {
			_, _ = w.Write(data)
		}
	}
	for {
		t, ok := stream.Next(r.Context())
		if !ok {
			break
		}
		tokens = append(tokens, t)
		if spoil != nil && q.Stream {
			switch text := spoil(len(tokens)); text {
			case "":
			case "cut":
				panic(http.ErrAbortHandler)
			default:
				fmt.Fprintf(w, "data: %s\n\n", text)
				return
			}
		}
		if q.Stream {
			send([]sched.Token{t}, nil)
		}
	}
	switch stream.Finish() {
	case sched.FinishError:
		if q.Stream {
			fmt.Fprint(w, "data: {\"error\":{\"message\":\"NaN\"}}\n\ndata: [DONE]\n\n")
		}
		return
	case sched.FinishCancelled:
		return
	}
	if !q.Stream {
		send(tokens, "length")
		return
	}
	send(nil, string(stream.Finish()))
	cached := stream.Timing().Cached
	fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":%d}}}`+"\n\ndata: [DONE]\n\n",
		len(q.Prompt), len(tokens), cached)
}

// score answers as vLLM does where prompt_logprobs are asked for.
func (f *fake) score(w http.ResponseWriter, q asked) {
	list := make([]any, len(q.Prompt))
	for i, id := range q.Prompt[1:] {
		list[i+1] = map[string]map[string]any{
			fmt.Sprint(id):                {"logprob": -3.5, "rank": 40},
			fmt.Sprint((id + 1) % 200000): {"logprob": -.5, "rank": 1},
			fmt.Sprint((id + 2) % 200000): {"logprob": -1.5, "rank": 2}}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{
		"prompt_logprobs": list, "finish_reason": "length"}}})
}
