package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer/answertest"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// slack is how far a busy machine or the race detector may miss the goals of these tests, and
// attempts is how often they measure: another program may hold the machine up for a moment.
const (
	slack    = 8
	attempts = 3
)

// hostileBodies cost much before they are admitted; n makes each of them new to the caches.
func hostileBodies(n int) []string {
	list := func(count int, one func(i int) string) string {
		all := make([]string, count)
		for i := range all {
			all[i] = one(i)
		}
		return strings.Join(all, ",")
	}
	schema := func(s string) string {
		return `{"messages":[` + porttest.Hello + `],"max_tokens":1,"response_format":{"type":"json_schema",` +
			`"json_schema":{"name":"x","schema":` + s + `}}}`
	}
	long, _ := json.Marshal(strings.Repeat(fmt.Sprintf("w%d ", n), 1<<18))
	return []string{
		schema(`{"enum":[` + list(90_000, func(i int) string { return fmt.Sprintf(`"v%d-%d"`, n, i) }) +
			`]}`),
		`{"max_tokens":1,"messages":[` + porttest.Hello + `],"tools":[` + list(4000, func(i int) string {
			return fmt.Sprintf(`{"type":"function","function":{"name":"f%d_%d","parameters":`+
				`{"type":"object","properties":{"a":{"type":"string","maxLength":%d}}}}}`, n, i, i+1)
		}) + `]}`,
		`{"max_tokens":1,"messages":[{"role":"user","content":[` + list(100_000, func(int) string {
			return `{"type":"text","text":"abcdefgh "}`
		}) + `]}]}`,
		`{"max_tokens":1,"messages":[{"role":"user","content":` + string(long) + `}]}`,
		schema(fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"string","pattern":`+
			`"(a|b)*a(a|b){12}%d"},"b":{"type":"string","pattern":"(a|b)*b(a|b){12}%d"}}}`, n, n)),
	}
}

// 64 requests that are expensive to read leave a tiny one its time, and are counted.
func TestTinyRequestsBesideHostileOnes(t *testing.T) {
	if testing.Short() {
		t.Skip("times say nothing under the race detector")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(2, runtime.NumCPU())))
	p := live(t, engine.Settings{})
	tiny := `{"max_tokens":1,"messages":[` + porttest.Hello + `]}`
	porttest.Post(t, p.Server, "/v1/chat/completions", tiny)
	var sent atomic.Int64
	var hostile sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for worker := range 64 {
		hostile.Go(func() {
			bodies := hostileBodies(worker)
			for i := worker; ctx.Err() == nil; i++ {
				r, err := http.NewRequestWithContext(ctx, "POST", p.URL+"/v1/chat/completions",
					strings.NewReader(bodies[i%len(bodies)]))
				if err != nil {
					t.Error(err)
					return
				}
				if answer, err := http.DefaultClient.Do(r); err == nil {
					answer.Body.Close()
					sent.Add(1)
				}
			}
		})
	}
	porttest.Eventually(t, func() (any, bool) {
		n := p.metric("ossrun:requests_preparing")
		return n, n > 8
	})
	p99 := time.Hour
	for n := 0; n < attempts && p99 > 100*time.Millisecond*slack; n++ {
		var took []time.Duration
		for range 100 {
			began := time.Now()
			porttest.Post(t, p.Server, "/v1/chat/completions", tiny)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		p99 = took[98]
		t.Logf("tiny requests beside 64 hostile ones: median %v, p99 %v; %d hostile answered",
			took[50].Round(time.Millisecond), p99.Round(time.Millisecond), sent.Load())
	}
	stop()
	hostile.Wait()
	if p99 > 100*time.Millisecond*slack {
		t.Errorf("p99 %v", p99)
	}
}

// The work for a request ends with its client.
func TestPreparationEndsWithItsClient(t *testing.T) {
	p := live(t, engine.Settings{})
	for i := range hostileBodies(0) {
		took := time.Hour
		for n := 0; n < attempts && took > 100*time.Millisecond*slack; n++ {
			took = p.abandon(t, hostileBodies(1000 + n)[i], time.Duration(20+10*i)*time.Millisecond)
		}
		if took > 100*time.Millisecond*slack {
			t.Errorf("body %d: work went on for %v", i, took)
		}
	}
}

// abandon sends a body, leaves after a while, and returns the processor time of what work for it
// went on.
func (p *livePort) abandon(t *testing.T, body string, after time.Duration) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "POST", p.URL+"/v1/chat/completions",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := http.DefaultClient.Do(r); err == nil {
		answer.Body.Close()
	}
	began := hosttest.ProcessTime()
	porttest.Eventually(t, func() (any, bool) {
		n := p.metric("ossrun:requests_preparing")
		return n, n == 0
	})
	return hosttest.ProcessTime() - began
}

// More requests than may wait are refused while they are read.
func TestPreparationIsCounted(t *testing.T) {
	srv, _ := porttest.Server(t, answertest.Answers("ok"),
		func(o *openai.Options) { o.MaxWaiting = 1 })
	var busy atomic.Int64
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			r := porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions", hostileBodies(2000 + n)[0])
			if r.Status == http.StatusTooManyRequests && r.Header.Get("Retry-After") != "" {
				busy.Add(1)
			}
		})
	}
	all.Wait()
	if busy.Load() == 0 {
		t.Error("no request was refused")
	}
}
