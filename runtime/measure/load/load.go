// Package load measures a server as its clients see it: requests sent to an OpenAI port at a rate
// or a concurrency, and of each the time to its first token, between its tokens and to its end.
//
// It returns data and prints only to the caller's writers. What must stay true: a metric is defined
// as in vLLM's benchmark, so that figures can be compared; the load's own work is small compared
// with the server's (BenchmarkStreams); a failed request is counted as failed and in no latency.
package load

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/remote/client"
)

type Options struct {
	Backend        Backend
	BackendName    string  // in tables and files; "": as its route
	Model          string  // as the server names it
	MaxConcurrency int     // 0: no limit
	RequestRate    float64 // requests a second; +Inf: all at once
	Burstiness     float64 // 1: a Poisson process; below 1 more bursts, above it fewer
	Seed           uint64
	IgnoreEOS      bool
	NoStream       bool           // ask for no stream: TTFT is then the time to the end
	Extra          map[string]any // members of the request's body
	Warmups        int            // requests first, which are not counted
	Ramp           Ramp
	IDPrefix       string   // of X-Request-Id; "": none is sent
	LoRAs          []string // adapters, in place of Model
	LoRAsInTurn    bool     // not at random
	Progress       func(done, total int)

	// the report
	Shape       Shape // of the table
	Percentiles []float64
	GPUs        int  // of the server; 0: not known
	Detailed    bool // in the file: every request's lengths, times and text too
	Metadata    map[string]string
	Label       string // in the file; "": none
}

// Ramp is a request rate that rises from Start to End over the run.
type Ramp struct {
	Strategy   string // linear, exponential or "" for none
	Start, End int    // requests a second
}

// Backend is the route that requests go to.
type Backend string

// The routes. Their names are vLLM's.
const (
	Completions Backend = "openai"
	Chat        Backend = "openai-chat"
)

func (o *Options) backendName() string { return cmp.Or(o.BackendName, string(o.Backend)) }

type Request struct {
	Prompt       string
	InputTokens  int           // of Prompt, as gpt-oss counts them
	OutputTokens int           // to ask for
	Due          time.Duration // after the start, of a trace
}

type Outcome struct {
	Err          error
	InputTokens  int
	OutputTokens int
	Sent         time.Time
	Queued       time.Duration // in the client, from when it was due until it was sent
	TTFT         time.Duration
	Gaps         []time.Duration // between one event with text and the next: ITL
	Latency      time.Duration   // E2EL: to the answer's last event
	Text         string
}

// Run sends the requests and returns how long that took. An error means that nothing was measured.
func Run(ctx context.Context, c *client.Client, requests []Request, o Options) ([]Outcome,
	time.Duration, error) {
	if len(requests) == 0 {
		return nil, 0, errors.New("there is no request to send")
	}
	for range o.Warmups {
		if out := send(ctx, c, requests[0], &o); out.Err != nil {
			return nil, 0, fmt.Errorf("the first request failed: %w", out.Err)
		}
	}
	var running errgroup.Group
	running.SetLimit(cmp.Or(o.MaxConcurrency, -1))
	var mu sync.Mutex
	doneCount := 0
	outcomes := make([]Outcome, len(requests))
	due := arrivals(requests, &o)
	random := rand.New(rand.NewPCG(o.Seed, 3))
	began := time.Now()
	for i, r := range requests {
		if !sleepUntil(ctx, began.Add(due[i])) {
			break
		}
		sender, o := c, o
		if o.IDPrefix != "" {
			sender = c.With("X-Request-Id", o.IDPrefix+strconv.Itoa(i))
		}
		if n := len(o.LoRAs); n > 0 {
			o.Model = o.LoRAs[random.IntN(n)]
			if o.LoRAsInTurn {
				o.Model = o.LoRAs[i%n]
			}
		}
		waits := time.Now()
		running.Go(func() error {
			if ctx.Err() != nil {
				return nil // it was over while this waited for its turn
			}
			queued := time.Since(waits)
			outcomes[i] = send(ctx, sender, r, &o)
			outcomes[i].Queued = queued
			mu.Lock()
			defer mu.Unlock()
			if doneCount++; o.Progress != nil {
				o.Progress(doneCount, len(requests))
			}
			return nil
		})
	}
	_ = running.Wait() // none fails
	return outcomes, time.Since(began), ctx.Err()
}

// arrivals is when each request is due after the start: by its trace, or with gaps of a gamma
// distribution of shape burstiness. At a steady rate gaps are scaled to its sum, as in vLLM, so
// that short runs have their rate too.
func arrivals(requests []Request, o *Options) []time.Duration {
	n := len(requests)
	due := make([]time.Duration, n)
	steady := !math.IsInf(o.RequestRate, 1) && o.RequestRate > 0
	random := rand.New(rand.NewPCG(o.Seed, 2))
	times := make([]float64, n)
	sum := 0.0
	for i := range times {
		if steady || o.Ramp.Strategy != "" {
			sum += gamma(random, o.Burstiness) / (o.Burstiness * o.rate(i, n))
		}
		times[i] = sum
	}
	scale := 1.0
	if steady {
		scale = float64(n) / o.RequestRate / sum
	}
	for i, r := range requests {
		due[i] = r.Due + time.Duration(times[i]*scale*float64(time.Second))
	}
	return due
}

// rate is the request rate at request i of n.
func (o *Options) rate(i, n int) float64 {
	progress := float64(i) / float64(max(n-1, 1))
	start, end := float64(o.Ramp.Start), float64(o.Ramp.End)
	switch o.Ramp.Strategy {
	case "linear":
		return start + (end-start)*progress
	case "exponential":
		return start * math.Pow(end/start, progress)
	}
	return 1
}

// gamma draws at a shape above 0 and scale 1 (Marsaglia and Tsang, 2000).
func gamma(random *rand.Rand, shape float64) float64 {
	if shape == 1 {
		return random.ExpFloat64()
	}
	if shape < 1 {
		return gamma(random, shape+1) * math.Pow(random.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := random.NormFloat64()
		v := math.Pow(1+c*x, 3)
		if v > 0 && math.Log(random.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

func sleepUntil(ctx context.Context, deadline time.Time) bool {
	if wait := time.Until(deadline); wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

func (b Backend) body(r Request, o *Options) (path string, body map[string]any) {
	body = map[string]any{"model": o.Model, "max_tokens": r.OutputTokens, "stream": !o.NoStream}
	if !o.NoStream {
		body["stream_options"] = map[string]any{"include_usage": true}
	}
	if o.IgnoreEOS {
		body["ignore_eos"] = true
	}
	switch b {
	case Chat:
		path = "/v1/chat/completions"
		body["messages"] = []map[string]string{{"role": "user", "content": r.Prompt}}
		body["max_completion_tokens"] = r.OutputTokens
		delete(body, "max_tokens")
	default:
		path = "/v1/completions"
		body["prompt"] = r.Prompt
	}
	maps.Copy(body, o.Extra)
	return path, body
}

// add appends the piece's text and tells whether the model said anything in it.
func add(text []byte, c *client.Chunk) ([]byte, bool) {
	start, calls := len(text), 0
	for _, choice := range c.Choices {
		text = append(text, choice.Text...)
		for _, m := range []client.Message{choice.Delta, choice.Message} {
			text = append(text, m.Reasoning...)
			text = append(text, m.ReasoningContent...)
			text = append(text, m.Content...)
			calls += len(m.Calls)
		}
	}
	return text, len(text) > start || calls > 0
}

func send(ctx context.Context, c *client.Client, r Request, o *Options) Outcome {
	path, body := o.Backend.body(r, o)
	out := Outcome{InputTokens: r.InputTokens, OutputTokens: -1, Sent: time.Now()}
	if o.NoStream {
		out.readWhole(ctx, c, path, body)
	} else {
		out.stream(ctx, c, path, body, r.OutputTokens)
	}
	if out.Err == nil && out.OutputTokens < 0 { // a server without usage
		out.OutputTokens = len(token.Get().Encode(nil, out.Text))
	}
	return out
}

func (o *Outcome) readWhole(ctx context.Context, c *client.Client, path string, body any) {
	var answer client.Chunk
	o.Err = c.Call(ctx, "POST", path, body, &answer)
	o.Latency = time.Since(o.Sent)
	o.TTFT = o.Latency
	text, _ := add(nil, &answer)
	o.Text = string(text)
	o.count(&answer)
}

func (o *Outcome) stream(ctx context.Context, c *client.Client, path string, body any,
	expected int) {
	s, err := c.Stream(ctx, path, body)
	if err != nil {
		o.Err = err
		return
	}
	defer s.Close()
	var text []byte
	o.Gaps = make([]time.Duration, 0, min(expected, 1<<16))
	last, end := o.Sent, o.Sent
	for {
		e, err := s.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				o.Err = err
			}
			break
		}
		now := time.Now()
		var piece client.Chunk
		if err := json.Unmarshal(e.Data, &piece); err != nil {
			o.Err = fmt.Errorf("an event of the stream is not as expected: %w", err)
			return
		}
		o.count(&piece)
		if len(piece.Choices) > 0 { // the one that says why it ended, too
			end = now
		}
		var news bool
		if text, news = add(text, &piece); !news {
			continue
		}
		if o.TTFT == 0 {
			o.TTFT = now.Sub(o.Sent)
		} else {
			o.Gaps = append(o.Gaps, now.Sub(last))
		}
		last = now
	}
	o.Latency, o.Text = end.Sub(o.Sent), string(text)
	if o.Err == nil && o.TTFT == 0 {
		o.Err = errors.New("the stream ended without a token")
	}
}

func (o *Outcome) count(c *client.Chunk) {
	if c.Usage != nil {
		o.OutputTokens = c.Usage.Completion
	}
}
