//go:build unix

package cli

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// A server whose stdout and stderr lose their reader goes on: lines of the log are lost, requests
// are answered, and an orderly stop removes the socket.
func TestServersOutliveTheReaderOfTheirLog(t *testing.T) {
	t.Parallel()
	cmd := ossrun(t, nil, "serve", "demo", "--device", "cpu", "--port", "0")
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = to, to
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	to.Close()
	s := &served{t: t, web: http.DefaultClient}
	address := regexp.MustCompile(`http://127[^/]*`)
	for lines := bufio.NewScanner(from); lines.Scan(); {
		if s.url = address.FindString(lines.Text()); s.url != "" {
			break
		}
	}
	from.Close() // before the last lines of the start
	for range 3 {
		s.post("/v1/completions", `{"model":"demo","prompt":"x","max_tokens":2}`, new(any))
	}
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	sockets, _ := filepath.Glob(filepath.Join(homeOf(cmd), "run", "ossrun", "*"))
	if len(sockets) > 0 {
		t.Errorf("%s remain", sockets)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A file on a full disk has a part of the output, so the exit code of a verb that prints is not 0.
func TestFullOutputFails(t *testing.T) {
	for _, line := range []string{"list", "list --json", "show demo", "launch",
		"vllm plan 120b --hardware H100", "vllm plan 120b --hardware H100 --print shell",
		"vllm plan 120b --hardware H100 --print k8s",
		"vllm plan 120b --hardware H100 --print compose", "keys list --json", "ps --json",
		"sessions list --json", "serve --print-config", "completion bash", "completion man",
		"version", "version --json", "service print"} {
		var errs strings.Builder
		code := Run(t.Context(), append([]string{"ossrun"}, strings.Fields(line)...),
			Terminal{In: strings.NewReader(""), Out: fullDisk{}, Err: &errs})
		if code != exitFailure || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("ossrun %s: exit code %d, %q", line, code, errs.String())
		}
	}
}
