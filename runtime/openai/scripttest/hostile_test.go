// Clients that are many, slow or gone: no connected one is lost, and nothing of the others remains.

package scripttest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
)

// descriptors counts the open files of the process; 0 if unknown.
func descriptors() int {
	list, _ := os.ReadDir("/proc/self/fd") // nil on other systems
	return len(list)
}

// settles waits until goroutines and descriptors are back to about what they were.
func settles(t *testing.T, goroutines, files int) {
	t.Helper()
	porttest.Eventually(t, func() ([4]int, bool) {
		g, f := runtime.NumGoroutine(), descriptors()
		return [4]int{goroutines, g, files, f}, g <= goroutines+5 && f <= files+5
	})
}

func chatBody(prompt string) string {
	return `{"stream":true,"detect_loops":false,"messages":[{"role":"user","content":"` + prompt +
		`"}]}`
}

// TestManyClients opens 1,584 streams at once, as a benchmark of vLLM's does. Every third client
// leaves after its first bytes, every third by closing only its writing half.
//
// SECURITY.md: A client (a key; without keys a local user or an address) that floods does not
// starve the others: places and pages go to who has the fewest.
func TestManyClients(t *testing.T) {
	const clients = 1584
	srv := serve(t)
	address := strings.TrimPrefix(srv.URL, "http://")
	said(t, srv, "[[say warm]]", "")
	http.DefaultClient.CloseIdleConnections()
	goroutines, files := runtime.NumGoroutine(), descriptors()
	var wait sync.WaitGroup
	var mu sync.Mutex
	wrong := map[string]int{}
	for i := range clients {
		wait.Go(func() {
			if err := client(address, i%3); err != nil {
				mu.Lock()
				wrong[err.Error()]++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if len(wrong) > 0 {
		t.Errorf("%v", wrong)
	}
	settles(t, goroutines, files)
}

// client asks for a stream. 0 reads it to its end, 1 closes its writing half, 2 leaves.
func client(address string, kind int) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	body := chatBody("[[think I count.]] [[say one two three four five six seven.]]")
	if kind != 0 {
		body = chatBody("[[loop on and on]]")
	}
	if _, err := fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"+
		"Content-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body); err != nil {
		return err
	}
	if kind == 1 {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, conn) // until the server ends it
		return nil
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	if kind == 2 { // to close the body would be to read on
		_, err := io.ReadFull(resp.Body, make([]byte, 100))
		return err
	}
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(string(all), "data: [DONE]\n\n") {
		return fmt.Errorf("the stream ends in %q", all[max(0, len(all)-60):])
	}
	return nil
}

// TestSlowReaders: clients that do not read block no other, and end when they disconnect.
func TestSlowReaders(t *testing.T) {
	srv := serve(t)
	address := strings.TrimPrefix(srv.URL, "http://")
	said(t, srv, "[[say warm]]", "")
	http.DefaultClient.CloseIdleConnections()
	goroutines, files := runtime.NumGoroutine(), descriptors()
	var slow []net.Conn
	body := chatBody("[[loop on and on]]")
	for range 64 {
		conn := hosttest.Must(net.Dial("tcp", address))(t)
		slow = append(slow, conn)
		hosttest.Must(fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"+
			"Content-Length: %d\r\n\r\n%s", len(body), body))(t)
	}
	for range 20 {
		if content, _, _ := said(t, srv, "[[say Still here.]]", ""); content != "Still here." {
			t.Errorf("%q", content)
		}
	}
	for _, conn := range slow {
		conn.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	settles(t, goroutines, files)
}

// TestStoredResponsesAreOnDisk: 10,000 of them (2,000, where tests may not take long) leave memory
// where the first fifth left it.
func TestStoredResponsesAreOnDisk(t *testing.T) {
	fifth := 400
	if os.Getenv("OSSRUN_LONG") != "" {
		fifth = 2000
	}
	store := hosttest.Must(records.Open(records.Options{TTL: time.Hour,
		File: filepath.Join(t.TempDir(), "kept.db")}))(t)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	srv := serveWith(t, store)
	heap := func() int64 {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	fill := func(n int) {
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for range n / 8 {
					resp, err := http.Post(srv.URL+"/v1/responses", "application/json",
						strings.NewReader(`{"input":"[[say A short answer.]]"}`))
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		}
		wait.Wait()
	}
	fill(fifth)
	first := heap()
	fill(4 * fifth)
	last := heap()
	t.Logf("%d MiB after %d responses, %d MiB after %d", first>>20, fifth, last>>20, 5*fifth)
	if last > first+(16<<20) {
		t.Errorf("the heap grew from %d to %d bytes", first, last)
	}
}
