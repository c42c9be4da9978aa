package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// said is an event that has some text; the first one of a stream has none.
var said = regexp.MustCompile(`"(content|reasoning)":"[^"]`)

// firstToken streams an answer with a key, and says when its first text came; 0: it did not.
func (s *served) firstToken(key, body string) (took time.Duration) {
	r, err := http.NewRequest(http.MethodPost, s.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0
	}
	r.Header.Set("Authorization", "Bearer "+key)
	began := time.Now()
	got, err := s.web.Do(r)
	if err != nil {
		return 0
	}
	defer got.Body.Close()
	for lines := bufio.NewScanner(got.Body); lines.Scan(); {
		if said.MatchString(lines.Text()) {
			took = time.Since(began)
			break
		}
	}
	_, _ = io.Copy(io.Discard, got.Body) // to its end
	return took
}

// A day's load in a minute, on the real program: 50 clients with a key each, one of which floods
// the server, one tries keys, and one sends expensive requests. The others wait only a few of their
// steps, and memory stays below doctor's figure.
func TestMeasureACrowdOfKeys(t *testing.T) {
	if os.Getenv("OSSRUN_MEASURE") == "" {
		t.Skip("it takes a quiet minute: OSSRUN_MEASURE=1")
	}
	ceiling := demoCeiling(t)
	s := serveDemo(t, "--swap-space", "0")
	keys := make([]string, 50)
	for i := range keys {
		keys[i] = s.with("keys", "add", fmt.Sprint("client-", i))
	}
	flooding, bombing, others := keys[0], keys[1], keys[3:]
	// measured are the first tokens of the others in a while, each of whom asks every few seconds.
	measured := func(while time.Duration) (took []time.Duration, failed int) {
		var mu sync.Mutex
		var all sync.WaitGroup
		end := time.Now().Add(while)
		for i, key := range others {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 1))
				pause := func(least, more time.Duration) {
					<-time.After(least + time.Duration(r.Int64N(int64(more))))
				}
				pause(0, 4*time.Second)
				for n := 0; time.Now().Before(end); n++ {
					d := s.firstToken(key, fmt.Sprintf(`{"stream":true,"max_tokens":8,"messages":`+
						`[{"role":"user","content":"Question %d of client %d: how do I serve it?"}]}`,
						n, i))
					mu.Lock()
					if took = append(took, d); d == 0 {
						failed++
					}
					mu.Unlock()
					pause(3*time.Second, 2*time.Second)
				}
			})
		}
		all.Wait()
		slices.Sort(took)
		return took, failed
	}
	at := func(took []time.Duration, part float64) time.Duration {
		return took[int(part*float64(len(took)-1))]
	}
	const while = 40 * time.Second
	measured(8 * time.Second) // the first requests of all
	before, failed := measured(while)

	stop := make(chan struct{})
	var bad sync.WaitGroup
	until := func(n int, do func()) {
		for range n {
			bad.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						do()
					}
				}
			})
		}
	}
	until(64, func() {
		s.firstToken(flooding, `{"stream":true,"max_tokens":200,"ignore_eos":true,"messages":`+
			`[{"role":"user","content":"Tell me everything."}]}`)
	})
	until(4, func() { s.as(fmt.Sprint("ossrun-", rand.Uint64()), "GET", "/v1/models", "") })
	bombs := []string{
		`{"messages":[{"role":"user","content":"` + strings.Repeat("a", 8<<20) + `"}]}`,
		`{"messages":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}`,
		`{"messages":[{"role":"user","content":"x"}],"max_tokens":8,"response_format":{"type":` +
			`"json_schema","json_schema":{"name":"x","schema":{"type":"string","pattern":"` +
			`(a{1,500}){1,500}"}}}}`,
		`{"messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, 40_000) +
			`{"role":"user","content":"x"}]}`,
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(bytes.Repeat([]byte(" "), 256<<20))
	w.Close()
	var next atomic.Int64
	until(1, func() {
		s.as(bombing, "POST", "/v1/chat/completions", bombs[int(next.Load())%len(bombs)])
		next.Add(1)
		r, _ := http.NewRequest("POST", s.url+"/v1/chat/completions", bytes.NewReader(packed.Bytes()))
		r.Header.Set("Authorization", "Bearer "+bombing)
		r.Header.Set("Content-Encoding", "gzip")
		if got, err := s.web.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, got.Body)
			got.Body.Close()
		}
	})
	s.eventually("the flood is here", func() bool {
		return s.metric("vllm:num_requests_waiting") > 0 && next.Load() > 0
	})
	with, failedWith := measured(while)
	close(stop)
	bad.Wait()
	t.Logf("first token of %d and %d requests: median %v and %v, 99th of 100 %v and %v; %d bombs; "+
		"%.0f MB at most of %.0f planned", len(before), len(with), at(before, 0.5), at(with, 0.5),
		at(before, 0.99), at(with, 0.99), next.Load(), s.takes("VmHWM")/1e6,
		ceiling/1e6)
	if failed+failedWith > 0 {
		t.Errorf("%d and %d requests of others failed", failed, failedWith)
	}
	if peak := s.takes("VmHWM"); peak > ceiling {
		t.Errorf("%.0f MB at most, more than the %.0f that doctor says", peak/1e6, ceiling/1e6)
	}
	// Without them a first token is a step of one sequence, with them it is one of 65 or two.
	if at(with, 0.99) > time.Second {
		t.Error("the others wait more than a second")
	}
}
