package cli

// This port with vLLM as its upstream: an executable named vllm replaces it, which is the demo on
// our own port, and running servers.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/remote/local"
)

// fakeVLLM serves by an executable named vllm: the demo at the port that it is given, with a log
// like vLLM's. It writes its number to a file.
func fakeVLLM(t *testing.T) (front *served, pid string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(self, filepath.Join(folder, "ossrun")); err != nil {
		t.Fatal(err)
	}
	script := `#!/bin/sh
echo $$ > ` + folder + `/pid
while [ $# -gt 0 ]; do
  [ "$1" = --port ] && port=$2
  shift
done
# vLLM prints this before its socket listens
echo "(APIServer pid=$$) INFO:     Application startup complete."
sleep 0.5
mkdir -p ` + folder + `/run
export XDG_RUNTIME_DIR=` + folder + `/run XDG_STATE_HOME=` + folder + `
exec ` + folder + `/ossrun serve demo --device cpu --served-model-name openai/gpt-oss-20b --port $port
`
	write(t, filepath.Join(folder, "vllm"), script)
	return serveIn(t, t.TempDir(), []string{"PATH=" + folder + ":/usr/bin:/bin", "VLLM_API_KEY="},
		"--engine", "vllm", "--hardware", "H100", "--launch", "local"), filepath.Join(folder, "pid")
}

// say asks the port for a chat completion, greedily, and returns its message.
func (s *served) say(members string) map[string]any {
	s.t.Helper()
	var answer struct {
		Choices []struct{ Message map[string]any }
	}
	s.post("/v1/chat/completions", `{"temperature":0,"max_tokens":300,"messages":[{"role":"user",`+
		`"content":"What is the weather in Paris?"}]`+members+`}`, &answer)
	delete(answer.Choices[0].Message, "tool_calls")
	return answer.Choices[0].Message
}

const strictAnswer = `,"response_format":{"type":"json_schema","json_schema":{"name":"a",` +
	`"strict":true,"schema":{"type":"object","properties":{"degrees":{"type":"integer"}},` +
	`"required":["degrees"],"additionalProperties":false}}}`

// vLLM is started, asked and stopped: our port passes its answers on unchanged, a strict form too,
// and nothing of it outlives us.
func TestVLLMBehindOurPort(t *testing.T) {
	t.Parallel()
	front, pid := fakeVLLM(t)
	here := askDemo(t)
	for _, members := range []string{"", strictAnswer, `,"reasoning_effort":"low"`} {
		got, want := fmt.Sprint(front.say(members)), fmt.Sprint(here.say(members))
		if got != want {
			t.Errorf("%s\n%s, without vLLM\n%s", members, got, want)
		}
		if members == strictAnswer && !regexp.MustCompile(`content:{"degrees": ?-?\d+}`).
			MatchString(got) {
			t.Errorf("the form is not held: %s", got)
		}
	}
	behind, said := upstreamOf(front), front.err.String()
	for _, want := range []string{"vLLM is started: ", "vllm serve", "--host 127.0.0.1 --port ",
		"tokens come from http://127.0.0.1:", "Application startup complete."} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in %s", want, said)
		}
	}
	// others on this machine cannot use it, and do not read its key in the list of processes
	if r, err := http.Get(behind + "/v1/models"); err != nil || r.StatusCode != 401 {
		t.Errorf("without its key vLLM answers %v, %v", r, err)
	} else {
		r.Body.Close()
	}
	number, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		proc := "/proc/" + strings.TrimSpace(string(number))
		variables, _ := os.ReadFile(proc + "/environ")
		key := regexp.MustCompile("VLLM_API_KEY=([^\x00]+)").FindSubmatch(variables)
		arguments, _ := os.ReadFile(proc + "/cmdline")
		if key == nil || strings.Contains(string(arguments)+said, string(key[1])) {
			t.Errorf("the key %q stands in %q or in what was said", key, arguments)
		}
	}
	if code := front.end(os.Interrupt); code != 0 && code != 130 {
		t.Errorf("it ends with %d: %s", code, front.err)
	}
	if r, err := http.Get(behind + "/health"); err == nil {
		r.Body.Close()
		t.Error("vLLM has outlived the port in front")
	}
}

// upstreamOf is the address of a front's vLLM, as its log has it.
func upstreamOf(front *served) (address string) {
	line := regexp.MustCompile(`tokens come from (\S+)`)
	front.eventually("the log names vLLM's address", func() bool {
		if m := line.FindStringSubmatch(front.err.String()); m != nil {
			address = m[1]
		}
		return address != ""
	})
	return address
}

// vLLM that ends by itself ends the port in front, with its reason.
func TestVLLMThatDies(t *testing.T) {
	t.Parallel()
	front, pid := fakeVLLM(t)
	front.ended = true
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	stand, err := os.FindProcess(number)
	if err == nil {
		err = stand.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	<-front.done
	if code := front.cmd.ProcessState.ExitCode(); code == 0 ||
		!strings.Contains(front.err.String(), "vLLM ended: ") {
		t.Errorf("it ends with %d: %s", code, front.err.String())
	}
}

// This program is killed, and vLLM, which has no other parent, does not outlive it.
func TestVLLMEndsWithAKilledFront(t *testing.T) {
	t.Parallel()
	front, pid := fakeVLLM(t)
	behind := upstreamOf(front)
	front.end(os.Kill)
	front.eventually("vLLM has ended", func() bool {
		r, err := http.Get(behind + "/health")
		if err == nil {
			r.Body.Close()
		}
		return err != nil
	})
	if _, err := os.Stat(pid); err != nil {
		t.Error(err)
	}
}

// One of two servers is killed under load: every answer is whole, also those that had begun.
func TestUpstreamIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	one, two := serveDemo(t), serveDemo(t)
	front := serveDemo(t, "--engine", "vllm", "--upstream", one.url+","+two.url)
	var clients sync.WaitGroup
	for i := range 12 {
		clients.Go(func() {
			for round := range 2 { // the second one begins without the server that was killed
				q := question{text: fmt.Sprint("Tell me about number ", i, "."), seed: i*2 + round,
					tokens: 60}
				if _, used, err := front.ask(t.Context(), q); err != nil || used != q.tokens {
					t.Errorf("question %d: %d tokens, %v", i, used, err)
				}
			}
		})
	}
	two.eventually("the second server has work", func() bool {
		return two.metric("vllm:num_requests_running") >= 4
	})
	two.end(os.Kill)
	clients.Wait()
	if said := front.err.String(); !strings.Contains(said, two.url+" is no longer used: ") {
		t.Error(said)
	}
	one.end(os.Kill)
	front.eventually("no server is left, which /ready and ossrun ps say", func() bool {
		r, _ := front.send("GET", "/ready", "")
		return r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Retry-After") != ""
	})
	var list []local.Status
	if out := front.with("ps", "--json"); json.Unmarshal([]byte(out), &list) != nil ||
		len(list) != 1 || list[0].State != local.Unreachable ||
		list[0].Models[0].State != "unreachable" {
		t.Error(out)
	}
}

// ours are flags that vLLM does not have, or that the plan knows by itself.
var ours = map[string]bool{
	"model": true, "engine": true, "device": true, "gpu": true, "isolate": true, "threads": true,
	"preset": true, "config": true, "print-config": true, "keep-alive": true, "host": true,
	"max-waiting": true, "deterministic": true, "compute": true, "dense": true, "log": true,
	"swap-disk": true, "tools": true, "no-speculation": true,
	"mcp-config": true, "python-tool": true, "search": true, "browser-allow": true,
	"remember": true, "no-remember-on-disk": true, "port": true, "share-sessions": true,
	"max-reasoning-tokens": true, "no-loop-detection": true, "tensor-parallel-size": true,
	"gpu-memory-utilization": true, "max-num-seqs": true, "dry-run": true, "print": true,
	"hardware": true, "launch": true, "speculative": true, "vllm-version": true, "platform": true,
	"input-len": true, "output-len": true, "concurrency": true, "nodes": true,
	"docker-arg": true, "spread": true, "upstream": true, "upstream-model": true, "pull": true, "api-key": true, "cpu-experts": true,
	"lora":        true,
	"tool-server": true, "uds": true, "any-user": true, "ssl-certfile": true, "ssl-keyfile": true,
	"allowed-origins": true,
	"api-key-file":    true, "allowed-hosts": true, "max-body": true, "log-level": true,
	"log-format": true, "log-prompts": true, "ignore-images": true,
	"reasoning-field": true,
}

// Every flag of serve is either ours, and kept from vLLM, or one that vLLM has too.
func TestFlagsThatVLLMGets(t *testing.T) {
	both := map[string]bool{"max-model-len": true, "kv-cache-dtype": true, "swap-space": true,
		"max-num-batched-tokens": true, "enable-prefix-caching": true,
		"no-enable-prefix-caching": true, "stream-interval": true, "served-model-name": true,
		"speculative-config": true}
	for _, name := range shared {
		if ours[name] || !both[name] {
			t.Errorf("vLLM has no %s", name)
		}
	}
	if len(shared) != len(both) {
		t.Errorf("%d of %d flags are handed on", len(shared), len(both))
	}
	var unknown []string
	for _, f := range serveCommand(Terminal{}).Flags {
		name := f.Names()[0]
		if v, ok := f.(cli.VisibleFlag); !ours[name] && !both[name] && (!ok || v.IsVisible()) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		t.Errorf("does vLLM have these, or are they ours? %v", unknown)
	}
}
