// The port over the demo model on the CPU, with a real connection between: what holds only where
// all rooms work together. Steps can be held, counted and made to fail, so nothing here waits for a
// clock.

package openai_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// stage is a device whose steps can be held and spoilt.
type stage struct {
	engine.Device
	steps atomic.Int64 // that have begun
	rows  atomic.Int64 // of them: the tokens that were computed

	mu sync.Mutex
	// nil: steps run freely; else each step sends its batch and waits for resume
	held   chan *engine.Batch
	resume chan struct{}
	fail   error // of the next step
	poison bool  // the next step's logits
}

type stageStep struct {
	engine.Step
	on *stage
}

func (s *stage) Compile(p *engine.Program) (engine.Step, error) {
	step, err := s.Device.Compile(p)
	return stageStep{step, s}, err
}

func (s stageStep) Forward(b *engine.Batch, logits []float32, times []int64) error {
	on := s.on
	on.steps.Add(1)
	on.rows.Add(int64(len(b.Tokens)))
	on.mu.Lock()
	held, resume, fail, poison := on.held, on.resume, on.fail, on.poison && len(logits) > 0
	on.fail = nil
	if poison {
		on.poison = false
	}
	on.mu.Unlock()
	if held != nil {
		select {
		case held <- b:
			<-resume
		case <-resume: // closed by free
		}
	}
	if fail != nil {
		return fail
	}
	err := s.Step.Forward(b, logits, times)
	if poison {
		for i := range logits {
			logits[i] = float32(math.NaN())
		}
	}
	return err
}

// hold makes every step from now on wait for one call of step, until free is called.
func (s *stage) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.resume = make(chan *engine.Batch), make(chan struct{})
}

// step waits for a step that is held, which goes on when the function it returns is called.
func (s *stage) step(t *testing.T) (b *engine.Batch, goOn func()) {
	t.Helper()
	select {
	case b = <-s.held:
		return b, func() { s.resume <- struct{}{} }
	case <-time.After(2 * time.Minute):
		t.Fatal("no step came")
		return nil, nil
	}
}

// free lets steps run again, one that is held included.
func (s *stage) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return
	}
	close(s.resume)
	s.held, s.resume = nil, nil
}

// fromAddress is a header of a test's request with its source address.
const fromAddress = "Test-From"

// livePort is a port over a real model.
type livePort struct {
	*httptest.Server
	t     *testing.T
	stage *stage
	model *serve.Model
	gone  chan struct{} // one for each request whose client the server has seen leave
}

func live(t *testing.T, o engine.Settings, change ...func(*openai.Options)) *livePort {
	t.Helper()
	found := hosttest.Must(checkpoint.Resolve("demo"))(t)
	dev := hosttest.Must(cpu.New(min(2, runtime.NumCPU())))(t)
	on := &stage{Device: dev}
	if o.MaxModelLen == 0 {
		o.MaxModelLen = 4096
	}
	m := hosttest.Must(serve.LoadOn(found, engine.On(on), o))(t)
	t.Cleanup(func() { hosttest.Check(t, m.Close()) })
	return (&livePort{stage: on, model: m}).port(t, change...)
}

// port is another port over the same model, which keeps what it remembers.
func (p *livePort) port(t *testing.T, change ...func(*openai.Options)) *livePort {
	t.Helper()
	m := p.model
	p = &livePort{t: t, stage: p.stage, model: m, gone: make(chan struct{}, 100)}
	options := openai.Options{Options: answer.Options{Models: sessiontest.Single(m, m.Stats, "demo")}}
	for _, c := range change {
		c(&options)
	}
	h := porttest.NewChecked(t, options)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			// everything below has been told before gone says so
			ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
			defer cancel()
			defer context.AfterFunc(r.Context(), func() { cancel(); p.gone <- struct{}{} })()
			r = r.WithContext(ctx)
		}
		r.RemoteAddr = cmp.Or(r.Header.Get(fromAddress), r.RemoteAddr)
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		p.stage.free()
		p.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return p
}

// metric is one value of /metrics.
func (p *livePort) metric(name string) float64 {
	p.t.Helper()
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) +
		`(?:\{[^}]*\})? (\S+)$`).FindStringSubmatch(porttest.Ask(p.t, "GET", p.URL+"/metrics", "").Body)
	if m == nil {
		p.t.Fatalf("there is no metric %s", name)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// want checks the gauges; a step must be blocked, or no turn running, so that they are stable.
func (p *livePort) want(running, waiting int, pages bool) {
	p.t.Helper()
	porttest.Eventually(p.t, func() (string, bool) {
		r, w, kv := p.metric("vllm:num_requests_running"), p.metric("vllm:num_requests_waiting"),
			p.metric("vllm:kv_cache_usage_perc")
		is := r == float64(running) && w == float64(waiting) && kv > 0 == pages
		return fmt.Sprintf("%v run, %v wait, %v of the pages are used; wanted %d and %d, pages %v",
			r, w, kv, running, waiting, pages), is
	})
}

// stream begins a stream, which leave ends from the client's side; the rest of it comes from text.
func (p *livePort) stream(body string) (leave func(), text func() string) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", p.URL+"/v1/chat/completions",
		strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		all, err := io.ReadAll(bufio.NewReader(resp.Body))
		if err != nil && !errors.Is(err, context.Canceled) {
			all = append(all, err.Error()...)
		}
		got <- string(all)
	}()
	p.t.Cleanup(cancel)
	return cancel, func() string {
		select {
		case s := <-got:
			return s
		case <-time.After(2 * time.Minute):
			p.t.Error("the stream does not end")
			return ""
		}
	}
}

const longAnswer = `{"stream":true,"ignore_eos":true,"max_tokens":3000,"seed":1,"messages":[{"role":"user","content":"What is ossrun?"}]}`

// A client that is killed in mid-stream: the step that runs then is the last one with its rows, its
// pages are free before the next one, and who waited for its place runs in that.
func TestKilledClientFreesItsPagesWithinAStep(t *testing.T) {
	p := live(t, engine.Settings{MaxNumSeqs: 1, MaxNumBatchedTokens: 128})
	p.stage.hold()
	leave, _ := p.stream(longAnswer)
	for range 5 { // the prompt and some tokens
		_, goOn := p.stage.step(t)
		goOn()
	}
	b, goOn := p.stage.step(t)
	if len(b.Tokens) != 1 || b.Seqs[0].Start < 50 {
		t.Fatalf("%d rows from position %d are no decode", len(b.Tokens), b.Seqs[0].Start)
	}
	leaveNext, _ := p.stream(strings.Replace(longAnswer, "ossrun", "this", 1))
	p.want(1, 1, true)
	used := p.metric("vllm:kv_cache_usage_perc")

	leave()
	<-p.gone // the server knows
	goOn()
	b, goOn = p.stage.step(t)
	if len(b.Seqs) != 1 || len(b.Tokens) < 2 { // the beginning of its prompt is known
		t.Errorf("the next step has %d rows of %d sequences: not the prompt of who waited",
			len(b.Tokens), len(b.Seqs))
	}
	p.want(1, 0, true)
	if now := p.metric("vllm:kv_cache_usage_perc"); now > used {
		t.Errorf("%v of the pages are used by one request, %v before by another", now, used)
	}

	leaveNext()
	<-p.gone
	steps := p.stage.steps.Load()
	goOn()
	p.want(0, 0, false)
	if n := p.stage.steps.Load(); n != steps {
		t.Errorf("%d more steps for nobody", n-steps)
	}
	if n := p.metric("ossrun:engine_steps_total"); n != float64(steps) {
		t.Errorf("%v steps are counted, %d were", n, steps)
	}
}

// A full queue says when to come again.
func TestFullQueueSaysWhenToComeAgain(t *testing.T) {
	p := live(t, engine.Settings{MaxNumSeqs: 1, MaxWaiting: 1, MaxNumBatchedTokens: 128})
	p.stage.hold()
	leave, _ := p.stream(longAnswer)
	_, goOn := p.stage.step(t)
	leaveNext, _ := p.stream(longAnswer)
	p.want(1, 1, true)
	r := porttest.Ask(t, "POST", p.URL+"/v1/chat/completions", longAnswer)
	porttest.WantFault(t, r, 429, "rate_limit_error", "", "rate_limit_exceeded", "try again in")
	if n, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || n < 1 || n > 60 {
		t.Errorf("Retry-After: %q", r.Header.Get("Retry-After"))
	}
	leave()
	leaveNext()
	<-p.gone
	<-p.gone
	goOn()
	p.want(0, 0, false)
}

// A device that fails ends the running requests with a clear error; the one that waits, and the
// next, are answered by a new engine.
func TestDeviceFaultThroughThePort(t *testing.T) {
	p := live(t, engine.Settings{MaxNumSeqs: 1, MaxNumBatchedTokens: 128})
	short := strings.Replace(strings.Replace(longAnswer, `"max_tokens":3000`, `"max_tokens":8`, 1),
		`"stream":true,`, "", 1)
	before := porttest.Post(t, p.Server, "/v1/chat/completions", short).Body
	p.stage.hold()
	_, failed := p.stream(longAnswer)
	for range 4 {
		_, goOn := p.stage.step(t)
		goOn()
	}
	p.stage.mu.Lock()
	p.stage.fail = errors.New("the card has fallen off the bus")
	p.stage.mu.Unlock()
	_, goOn := p.stage.step(t) // was asked for before
	_, waited := p.stream(strings.Replace(short, "{", `{"stream":true,`, 1))
	p.want(1, 1, true)
	goOn()
	p.stage.free()
	list := porttest.Events(t, failed())
	if n := len(list); n < 3 || porttest.At(list[n-2].Json, "error", "code") != "engine_fault" ||
		list[n-1].Data != "[DONE]" ||
		!strings.Contains(fmt.Sprint(porttest.At(list[n-2].Json, "error", "message")),
			"fallen off the bus") {
		t.Errorf("the running stream ends with %v", list[max(0, len(list)-2):])
	}
	if s := waited(); !strings.Contains(s, `"finish_reason":"length"`) {
		t.Errorf("the waiting stream: %s", s)
	}
	after := porttest.Post(t, p.Server, "/v1/chat/completions", short).Body
	if a, b := porttest.At(porttest.Decode(t, before), "choices", 0, "message"),
		porttest.At(porttest.Decode(t, after), "choices", 0,
			"message"); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("before the fault %v, after it %v", a, b)
	}
	if n := p.metric("ossrun:engine_faults_total"); n != 1 {
		t.Errorf("%v faults are counted", n)
	}
}

// A NaN in the logits ends its request, whole or streamed, and no other.
func TestNaNThroughThePort(t *testing.T) {
	p := live(t, engine.Settings{MaxNumBatchedTokens: 128})
	poison := func() {
		p.stage.mu.Lock()
		p.stage.poison = true
		p.stage.mu.Unlock()
	}
	poison()
	porttest.WantFault(t, porttest.Ask(t, "POST", p.URL+"/v1/chat/completions", strings.Replace(longAnswer,
		`"stream":true,`, "", 1)), 500, fields.KindServer, "", "non_finite_logits",
		"NaN or infinite")
	p.stage.hold()
	_, text := p.stream(longAnswer)
	for range 3 {
		_, goOn := p.stage.step(t)
		goOn()
	}
	poison()
	p.stage.free()
	list := porttest.Events(t, text())
	if n := len(list); n < 3 || porttest.At(list[n-2].Json, "error", "code") != "non_finite_logits" {
		t.Errorf("the stream ends with %v", list[max(0, len(list)-2):])
	}
	p.want(0, 0, false)
	if n := p.metric("ossrun:non_finite_logits_total"); n != 2 {
		t.Errorf("%v are counted", n)
	}
	if n := p.metric("ossrun:engine_faults_total"); n != 0 {
		t.Errorf("%v faults: the engine was started again for a NaN", n)
	}
	porttest.Post(t, p.Server, "/v1/chat/completions", strings.Replace(strings.Replace(longAnswer,
		`"stream":true,`, "", 1), "3000", "4", 1))
}

// Sixty-four streams at once, all with their own seeds: each says what it says alone, and nothing
// is left of them.
func TestManyStreamsThroughThePort(t *testing.T) {
	// so that most of them wait, and join a batch that runs
	p := live(t, engine.Settings{MaxNumSeqs: 24, Deterministic: true})
	body := func(seed int) string {
		return fmt.Sprintf(`{"stream":true,"ignore_eos":true,"max_tokens":10,"seed":%d,"messages":[{"role":"user","content":"What is ossrun? %d"}]}`, seed, seed%3)
	}
	text := func(stream string) string {
		var b strings.Builder
		list, err := porttest.ParseEvents(stream)
		for _, e := range list {
			for _, name := range []string{"reasoning", "content"} {
				if piece, ok := porttest.At(e.Json, "choices", 0, "delta", name).(string); ok {
					b.WriteString(piece)
				}
			}
		}
		return fmt.Sprint(b.String(), err)
	}
	alone := make([]string, 4)
	for i := range alone {
		_, all := p.stream(body(i))
		alone[i] = text(all())
	}
	goroutines := p.metric("go_goroutines")
	var streams []func() string
	for i := range 64 {
		_, all := p.stream(body(i % 4))
		streams = append(streams, all)
	}
	for i, all := range streams {
		if got := text(all()); got != alone[i%4] || len(got) < 10 {
			t.Errorf("stream %d: %q, alone %q", i, got, alone[i%4])
		}
	}
	p.want(0, 0, false)
	http.DefaultClient.CloseIdleConnections()
	porttest.Eventually(t, func() (string, bool) {
		n := p.metric("go_goroutines")
		return fmt.Sprintf("%v goroutines before, %v after", goroutines, n), n <= goroutines+8
	})
}
