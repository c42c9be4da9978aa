// Command load streams many chat completions at once from the scripted server and counts the
// tokens, to measure the port and not a model:
//
//	taskset -c 0 env GOMAXPROCS=1 go run ./runtime/openai/scripttest/server -listen 127.0.0.1:8000
//	taskset -c 1 go run ./runtime/openai/scripttest/load -url http://127.0.0.1:8000/v1
//
// It decodes nothing but the usage that ends a stream, so that one core is enough for it. With
// -step on both, set to a real device's step time, it says how much longer a step took, which is
// the port's share of it.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:8000/v1", "the port")
	streams := flag.Int("streams", 1000, "how many at once")
	tokens := flag.Int("tokens", 500, "of each answer")
	rounds := flag.Int("rounds", 3, "how often; the first one is not counted")
	step := flag.Duration("step", 0, "how long a step of the server takes")
	flag.Parse()
	for i := range *rounds {
		r, err := round(*url, *streams, *tokens)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("round %d: %d tokens of %d streams in %.2f s: %.0f tokens/s, %.1f tokens an "+
			"event, %.0f MB/s\n", i, r.tokens, *streams, r.took.Seconds(),
			float64(r.tokens)/r.took.Seconds(), float64(r.tokens)/float64(r.events),
			float64(r.bytes)/1e6/r.took.Seconds())
		if *step > 0 {
			each := r.flowed / time.Duration(r.words)
			fmt.Printf("a token every %.3f ms, %.2f %% of it more than the step\n",
				each.Seconds()*1e3, 100*(1-step.Seconds()/each.Seconds()))
		}
	}
}

// result is the total of all streams of a round.
type result struct {
	tokens, events, bytes int
	took                  time.Duration
	// of the second halves, when every prompt has been read
	words  int           // each is a token
	flowed time.Duration // of all streams
}

func round(url string, streams, tokens int) (result, error) {
	body, err := json.Marshal(map[string]any{"model": "20b", "stream": true,
		"stream_options": map[string]bool{"include_usage": true},
		"messages": []map[string]string{{"role": "user",
			"content": "[[say " + strings.Repeat(" word", tokens-4) + "]]"}}})
	if err != nil {
		return result{}, err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: streams}}
	defer client.CloseIdleConnections()
	var all result
	var failed error
	var mu sync.Mutex
	var wait sync.WaitGroup
	began := time.Now()
	for range streams {
		wait.Go(func() {
			one, err := stream(client, url, body, tokens)
			mu.Lock()
			defer mu.Unlock()
			all.tokens += one.tokens
			all.events += one.events
			all.bytes += one.bytes
			all.words += one.words
			all.flowed += one.flowed
			failed = errors.Join(failed, err)
		})
	}
	wait.Wait()
	all.took = time.Since(began)
	return all, failed
}

var mark, word = []byte("data: "), []byte(" word")

// stream reads one answer.
func stream(client *http.Client, url string, body []byte, tokens int) (r result, err error) {
	resp, err := client.Post(url+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	buffer := make([]byte, 32<<10)
	var last []byte    // the end of the stream, which has the usage
	var half time.Time // when half of the answer was read
	said := 0
	for {
		n, err := resp.Body.Read(buffer)
		switch said += bytes.Count(buffer[:n], word); {
		case said < tokens/2:
		case half.IsZero():
			half, r.words = time.Now(), -said
		default:
			r.flowed = time.Since(half)
		}
		r.bytes += n
		r.events += bytes.Count(buffer[:n], mark)
		last = append(last, buffer[:n]...)
		last = last[max(0, len(last)-2048):]
		if err == io.EOF {
			break
		}
		if err != nil {
			return r, err
		}
	}
	r.words += said
	_, text, _ := bytes.Cut(last, []byte(`"usage":{`))
	if _, err := fmt.Sscanf(string(text), `"prompt_tokens":%d,"completion_tokens":%d`, new(int),
		&r.tokens); err != nil {
		return r, fmt.Errorf("status %d, no usage in %q", resp.StatusCode, last)
	}
	return r, nil
}
