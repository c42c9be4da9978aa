package load

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/remote/client"
)

const asServer = "OSSRUN_TEST_STREAMS"

// serveStreams makes this process a server that streams as fast as it can, if it was started so.
func serveStreams() bool {
	if os.Getenv(asServer) == "" {
		return false
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	event := []byte(`data: {"id":"cmpl-0","object":"text_completion","created":1,"model":"m",` +
		`"choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null}]}` + "\n\n")
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // the other side's end
		os.Exit(0)
	}()
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range streamTokens {
			_, _ = w.Write(event)
			w.(http.Flusher).Flush()
		}
		_, _ = w.Write([]byte("data: [DONE]\n\n"))
	}))
	return true
}

const streamTokens, streamCount = 200, 1000

// BenchmarkStreams is the load's own cost: 1,000 streams at once from a server in another process,
// an event a token; tokens a second of this process's CPU time.
func BenchmarkStreams(b *testing.B) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asServer+"=1")
	in, _ := cmd.StdinPipe()
	out := hosttest.Must(cmd.StdoutPipe())(b)
	hosttest.Check(b, cmd.Start())
	defer func() { in.Close(); _ = cmd.Wait() }()
	address := hosttest.Must(bufio.NewReader(out).ReadString('\n'))(b)
	c := hosttest.Must(client.New(strings.TrimSpace(address), ""))(b)
	defer c.Close()
	list := Random{Input: 8, Output: streamTokens}.Requests(streamCount, 1)
	before, events := hosttest.ProcessTime(), 0
	for b.Loop() {
		outcomes, _, err := Run(b.Context(), c, list, everything())
		if err != nil {
			b.Fatal(err)
		}
		for _, o := range outcomes {
			if o.Err != nil {
				b.Fatal(o.Err)
			}
			events += len(o.Gaps) + 1
		}
	}
	b.ReportMetric(float64(events)/(hosttest.ProcessTime()-before).Seconds(), "tokens/cpu-s")
}
