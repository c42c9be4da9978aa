// ossrun serve under load, as a process of its own that runs this test's code (under the race
// detector where the test does).
//
// The load generator knows the whole text of every answer, since the same seed gives the same
// tokens whatever else runs: a token that is lost, doubled or in the wrong stream is seen in the
// text.

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A question of the load, and the whole answer to it.
type question struct {
	text   string
	seed   int
	tokens int // max_tokens
	answer string
	used   int // completion tokens
}

func (q question) body() string {
	text, _ := json.Marshal(q.text)
	return fmt.Sprintf(`{"model":"demo","stream":true,"stream_options":{"include_usage":true},"seed":%d,"max_tokens":%d,"ignore_eos":true,
		"messages":[{"role":"user","content":%s}]}`, q.seed, q.tokens, text)
}

// ask streams one answer: its text, reasoning included, and the tokens that the server counted.
func (s *served) ask(ctx context.Context, q question) (text string, used int, err error) {
	began, first := time.Now(), time.Duration(0)
	req, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/chat/completions",
		strings.NewReader(q.body()))
	if err != nil {
		return "", 0, err
	}
	resp, err := s.web.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		return "", 0, fmt.Errorf("status %d: %s", resp.StatusCode, body)
	}
	var b strings.Builder
	finish := ""
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			if finish == "" {
				return "", 0, errors.New("the stream ended without a finish reason")
			}
			if s.seen != nil {
				s.seen(first, time.Since(began), used)
			}
			return b.String(), used, nil
		}
		var chunk struct {
			Error   *struct{ Message string }
			Choices []struct {
				Delta struct {
					Content, Reasoning string
					ToolCalls          []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				FinishReason string `json:"finish_reason"`
			}
			Usage *struct {
				Completion int `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return "", 0, fmt.Errorf("%w in %s", err, data)
		}
		if chunk.Error != nil {
			return "", 0, errors.New(chunk.Error.Message)
		}
		for _, c := range chunk.Choices {
			b.WriteString(c.Delta.Reasoning + c.Delta.Content)
			for _, call := range c.Delta.ToolCalls {
				b.WriteString(call.Function.Name + call.Function.Arguments)
			}
			finish += c.FinishReason
		}
		if first == 0 && b.Len() > 0 {
			first = time.Since(began)
		}
		if chunk.Usage != nil {
			used = chunk.Usage.Completion
		}
	}
	return "", 0, errors.Join(errors.New("the stream was cut"), lines.Err())
}

// questions are asked once alone, so that their answers are known.
func (s *served) questions(n, tokens int) []question {
	s.t.Helper()
	texts := []string{"What is ossrun?", "How do I serve an OpenAI API?", "Which models exist?",
		"How do I download the 20b model?"}
	var list []question
	for i := range n {
		q := question{text: texts[i%len(texts)], seed: 1000 + i, tokens: tokens}
		var err error
		if q.answer, q.used, err = s.ask(s.t.Context(), q); err != nil || q.answer == "" ||
			q.used == 0 {
			s.t.Fatalf("alone: %q, %d tokens, %v", q.answer, q.used, err)
		}
		list = append(list, q)
	}
	return list
}

// load keeps n streams open until the time is up, each at least once, and returns how many answers
// and tokens came.
func (s *served) load(n int, long time.Duration, list []question) (answers, tokens int64) {
	s.t.Helper()
	var wg sync.WaitGroup
	var failed atomic.Int32
	end := time.Now().Add(long)
	for i := range n {
		wg.Go(func() {
			for k := i; ; k++ {
				q := list[k%len(list)]
				text, used, err := s.ask(s.t.Context(), q)
				if err != nil || text != q.answer || used != q.used {
					if failed.Add(1) <= 3 {
						s.t.Errorf("stream %d: %v, %d tokens for %d\ngot  %q\nwant %q", i, err,
							used, q.used, text, q.answer)
					}
					return
				}
				atomic.AddInt64(&answers, 1)
				atomic.AddInt64(&tokens, int64(used))
				if time.Now().After(end) {
					return
				}
			}
		})
	}
	wg.Wait()
	if f := failed.Load(); f > 0 {
		s.t.Errorf("%d of %d streams failed", f, n)
	}
	return answers, tokens
}

// rest waits until nothing runs and the connections are gone.
func (s *served) rest() {
	s.t.Helper()
	s.eventually("no request runs", func() bool {
		return s.metric("vllm:num_requests_running") == 0 &&
			s.metric("vllm:num_requests_waiting") == 0 && s.metric("vllm:kv_cache_usage_perc") == 0
	})
	s.web.CloseIdleConnections()
}

// Sixty-four streams at once: no error, no lost or doubled token, everything given back; and a
// client that leaves gives its pages back.
func TestServeManyStreams(t *testing.T) {
	t.Parallel()
	s := serveDemo(t)
	list := s.questions(4, 12)
	s.rest()
	goroutines := s.metric("go_goroutines")
	began, used := time.Now(), s.metric("process_cpu_seconds_total")
	answers, tokens := s.load(64, 0, list)
	t.Logf("%d answers, %d tokens in %v and %.1f s of CPU", answers, tokens,
		time.Since(began).Round(time.Millisecond), s.metric("process_cpu_seconds_total")-used)
	s.rest()
	s.eventually("the goroutines of the streams end",
		func() bool { return s.metric("go_goroutines") <= goroutines+4 })

	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	gone := make(chan error, 1)
	go func() {
		_, _, err := s.ask(ctx, question{text: "What is ossrun?", seed: 1, tokens: 4000})
		gone <- err
	}()
	s.eventually("the request runs", func() bool {
		return s.metric("vllm:num_requests_running") == 1 &&
			s.metric("vllm:kv_cache_usage_perc") > 0
	})
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the client's own error is %v", err)
	}
	s.rest()
}

// TestServeSoak holds a thousand streams for a minute.
func TestServeSoak(t *testing.T) {
	if os.Getenv("OSSRUN_LONG") == "" {
		t.Skip("slow: set OSSRUN_LONG=1")
	}
	s := serveDemo(t, "--max-waiting", "4096")
	list := s.questions(8, 40)
	// pools, caches and stacks have their size after this, and the heap has been collected at its
	// largest
	for range 3 {
		s.load(1000, 0, list)
		s.rest()
	}
	goroutines, memory, used := s.metric("go_goroutines"), s.takes("VmRSS"),
		s.metric("process_cpu_seconds_total")
	began := time.Now()
	answers, tokens := s.load(1000, time.Minute, list)
	took := time.Since(began)
	used = s.metric("process_cpu_seconds_total") - used
	s.rest()
	t.Logf("1,000 streams: %d answers, %d tokens in %v and %.0f s of CPU", answers, tokens,
		took.Round(time.Millisecond), used)
	s.eventually("memory and goroutines are those of before", func() bool {
		return s.takes("VmRSS") <= 1.05*memory && s.metric("go_goroutines") <= goroutines+4
	})
}

// Two hundred answers at once of 160 tokens end within 50 s on two cores, with the table of what
// 100 clients see that stream.
func TestMeasureTwoHundred(t *testing.T) {
	if os.Getenv("OSSRUN_MEASURE") == "" {
		t.Skip("a figure of a quiet machine: OSSRUN_MEASURE=1")
	}
	s := serveDemo(t)
	list := s.questions(4, 160)
	measure := func(n int) (cpu float64) {
		began, used := time.Now(), s.metric("process_cpu_seconds_total")
		var mu sync.Mutex
		var first, each []time.Duration
		s.seen = func(ttft, total time.Duration, tokens int) {
			mu.Lock()
			defer mu.Unlock()
			first, each = append(first, ttft),
				append(each, (total-ttft)/time.Duration(max(1, tokens-1)))
		}
		_, tokens := s.load(n, 0, list)
		s.seen = nil
		cpu = s.metric("process_cpu_seconds_total") - used
		slices.Sort(first)
		slices.Sort(each)
		at := func(d []time.Duration, q int) time.Duration {
			return d[(len(d)-1)*q/100].Round(100 * time.Microsecond)
		}
		t.Logf("%d at once of up to 160 tokens: %d tokens in %v and %.1f s of CPU; TTFT p50 %v, "+
			"p99 %v; TPOT p50 %v, p99 %v", n, tokens,
			time.Since(began).Round(time.Millisecond), cpu, at(first, 50), at(first, 99),
			at(each, 50), at(each, 99))
		return cpu
	}
	measure(100)
	if cpu := measure(200); cpu > 100 {
		t.Errorf("200 answers took %.0f s of CPU, more than 50 s on two cores", cpu)
	}
}
