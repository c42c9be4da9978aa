//go:build unix

package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A model that is named and not here: nothing is downloaded without a word for it, --pull and its
// variable decide where no person is, offline is an error at once, and stdout has the answer only.
func TestNamedModelsAreFetched(t *testing.T) {
	t.Parallel()
	_, variables := aHub(t)
	home := t.TempDir()
	agent, program := filepath.Join(home, "bin", "pi"), filepath.Join(home, "bin", "ossrun")
	self, err := os.Executable()
	if err := errors.Join(err, os.Mkdir(filepath.Dir(agent), 0o700),
		os.Link(self, program), // which starts itself by its name: not by a symbolic link
		os.WriteFile(agent, []byte("#!/bin/sh\necho \"$@\"\n"), 0o700),
		os.WriteFile(filepath.Join(home, "one.jsonl"), []byte(`{"custom_id":"a","method":"POST",`+
			`"url":"/v1/completions","body":{"prompt":"a","max_tokens":1}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	run := func(variable string, line string) (code int, out, errs string) {
		t.Helper()
		cmd, err := ossrunIn(home, strings.Fields(line)...)
		if err != nil {
			t.Fatal(err)
		}
		var o, e bytes.Buffer
		cmd.Env = append(append(cmd.Env, variables...), variable,
			"PATH="+filepath.Dir(agent)+":"+os.Getenv("PATH"))
		cmd.Dir = home
		cmd.Stdout, cmd.Stderr = &o, &e
		if err := cmd.Run(); err != nil && !isError[*exec.ExitError](err) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), o.String(), e.String()
	}
	const missing, offline = "gpt-oss-20b is not downloaded: run ossrun pull 20b",
		"nothing is fetched offline"
	for _, c := range []struct {
		variable, line string
		code           int
		errs           string
	}{
		{"", "chat --model 20b --effort low hi", exitModel, missing},
		{"", "run 20b hi", exitModel, missing},
		{"", "serve openai/gpt-oss-20b --port 0", exitModel, missing},
		{"", "bench --model gpt-oss:20b", exitModel, missing},
		{"", "chat --model 20b --pull never hi", exitModel, missing},
		{"OSSRUN_PULL=missing", "chat --model 20b --pull never hi", exitModel, missing},
		{"OSSRUN_PULL=ask", "chat --model 20b hi", exitModel, missing},
		{"OSSRUN_PULL=often", "chat --model 20b hi", exitUsage, "OSSRUN_PULL must be ask, always,"},
		{"", "chat --model 20b --pull often hi", exitUsage, "--pull must be ask, always, missing"},
		{"HF_HUB_OFFLINE=1", "chat --model 20b --pull missing hi", exitModel, offline},
		{"HF_HUB_OFFLINE=1", "serve 20b --pull always", exitModel, offline},
		{"", "chat --model hf:someone/gated --pull missing hi", exitModel, "gated"},
		{"", "chat --model nothing --pull always hi", exitModel, "unknown model"},
		{"", "chat --model demo --pull always --max-tokens 40 hi", exitOK, ""},
		{"", "chat --model demo --lora hf:someone/adapter hi", exitModel,
			"adapter someone/adapter is not downloaded: run ossrun pull hf:someone/adapter"},
		{"OSSRUN_PULL=often", "serve --lora x=hf:someone/adapter", exitUsage, "OSSRUN_PULL must be"},
		{"", "import 20b --lora hf:someone/adapter", exitModel, "adapter someone/adapter is not"},
		{"", "import 20b", exitModel, missing},
		{"HF_HUB_OFFLINE=1", "import 20b --pull missing", exitModel, offline},
		{"", "import hf:someone/wide --pull never", exitModel, "hf:someone/wide is not downloaded"},
		{"", "batch one.jsonl two.jsonl --model 20b", exitFailure, missing},
		{"HF_HUB_OFFLINE=1", "batch one.jsonl two.jsonl --model 20b --pull missing", exitModel, offline},
		{"", "bench --suite seed --model 20b", exitFailure, missing},
		{"HF_HUB_OFFLINE=1", "bench --suite seed --model 20b --pull missing", exitModel, offline},
		{"", "launch --model 20b pi", exitFailure, missing},
		{"HF_HUB_OFFLINE=1", "launch --model 20b --pull missing pi", exitModel, offline},
	} {
		code, out, errs := run(c.variable, c.line)
		if code != c.code || !strings.Contains(errs, c.errs) || out != "" != (code == exitOK) {
			t.Errorf("%s %s: %d, %q, %s", c.variable, c.line, code, out, errs)
		}
		if strings.Contains(errs, "asking") != strings.Contains(c.line, "gated") {
			t.Errorf("%s %s asks the hub: %s", c.variable, c.line, errs)
		}
	}
	for _, line := range []string{"import 20b --lora hf:someone/adapter --out both",
		"batch one.jsonl two.jsonl --model 20b", "launch --model 20b pi",
		"chat --model 20b --lora hf:someone/adapter --max-tokens 40 hi"} {
		if err := os.RemoveAll(filepath.Join(home, "hub")); err != nil {
			t.Fatal(err)
		}
		code, out, errs := run("OSSRUN_PULL=missing", line)
		if code != exitOK || !strings.Contains(errs, "for openai/gpt-oss-20b") {
			t.Errorf("%s: %d, %q, %s", line, code, out, errs)
		}
		if strings.Contains(errs, "for someone/adapter") != strings.Contains(line, "adapter") {
			t.Errorf("%s: %s", line, errs)
		}
	}
	if err := os.RemoveAll(filepath.Join(home, "hub")); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{"OSSRUN_PULL=missing", "run gpt-oss:latest --max-tokens 40 hi"}, // downloads it
		{"HF_ENDPOINT=http://127.0.0.1:9", "chat --model 20b --pull missing --max-tokens 40 hi"},
		{"", "chat --model 20b --pull always --max-tokens 40 hi"}, // finds nothing newer
	} {
		code, out, errs := run(c[0], c[1])
		if code != exitOK || out == "" || strings.Contains(out, "is ready") {
			t.Errorf("%s: %d, %q, %s", c, code, out, errs)
		}
		if asked := strings.Contains(errs, "asking"); asked == strings.Contains(c[0], ":9") {
			t.Errorf("%s: the hub was asked: %t", c, asked)
		}
	}
}

// On a terminal a person is asked once, with the size, and a no downloads nothing.
func TestPeopleAreAskedBeforeADownload(t *testing.T) {
	t.Parallel()
	_, variables := aHub(t)
	first := ossrun(t, variables, "run", "20b", "--max-tokens", "40", "hi")
	const question = "gpt-oss-20b is not downloaded: 1"
	term, cmd := runInTerminal(t, 100, 24, first)
	term.wait(question, " MB, ", " at ", "MB/s; ", "GB of disk are free.", "Download it now? [Y/n]")
	term.send("n\r")
	<-term.over
	exit, _ := errors.AsType[*exec.ExitError](cmd.Wait())
	if exit == nil || exit.ExitCode() != exitModel || !strings.Contains(term.text(), "run ossrun pull") {
		t.Errorf("after a no: %v, %s", exit, term.text())
	}
	term, cmd = runInTerminal(t, 100, 24, sameHome(first, first.Args[1:]...))
	term.wait(question, "[Y/n]")
	term.send("\r")
	<-term.over
	if err := cmd.Wait(); err != nil || !strings.Contains(term.text(), "gpt-oss-20b is ready") {
		t.Errorf("after a yes: %v, %s", err, term.text())
	}
	term, cmd = runInTerminal(t, 100, 24, sameHome(first, first.Args[1:]...))
	<-term.over
	if err := cmd.Wait(); err != nil || strings.Contains(term.text(), "Download it") {
		t.Errorf("with the model: %v, %s", err, term.text())
	}
}

// A server downloads what it is named, as a container and a service ask for; a download that was
// interrupted resumes with the next start.
func TestServersFetchAndResume(t *testing.T) {
	t.Parallel()
	hub, variables := aHub(t)
	home := t.TempDir()
	hub.Throttle(4 << 20)
	const weights = "model.safetensors"
	socket := filepath.Join(home, "port")
	serve := func() (*exec.Cmd, *heard) {
		cmd, err := ossrunIn(home, "serve", "openai/gpt-oss-20b", "--uds", socket)
		if err != nil {
			t.Fatal(err)
		}
		log := &heard{}
		cmd.Env, cmd.Stderr = append(append(cmd.Env, variables...), pullVariable+"=missing"), log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd, log
	}
	cmd, log := serve()
	if !happens(func() bool { return hub.Sent(weights) > 20<<20 }) {
		t.Fatalf("nothing is downloaded: %s", log)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
	const far = `downloading gpt-oss-20b, \d[\d.]+ of \d[\d.]+ MB"`
	for path, form := range map[string]string{"/health": `^{"status":"` + far,
		"/v1/chat/completions": `^{"error":{"message":"` + far, "/v1/models": `"message":"` + far,
		"/v1/messages": `^{"type":"error","error":{"type":"[a-z_]+","message":"` + far,
		"/api/chat":    `^{"error":"` + far, "/": far} {
		method, body := http.MethodGet, ""
		if strings.HasSuffix(path, "s") && path != "/v1/models" || path == "/api/chat" {
			method, body = http.MethodPost, `{"messages":[]}`
		}
		request, err := http.NewRequest(method, "http://ossrun"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatalf("%s while it downloads: %v", path, err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusServiceUnavailable ||
			answer.Header.Get("Retry-After") == "" || !regexp.MustCompile(form).Match(text) {
			t.Errorf("%s: %v, %d, %v, %s", path, err, answer.StatusCode, answer.Header, text)
		}
	}
	list, err := sameHome(cmd, "ps").Output()
	if !regexp.MustCompile(`\n\d+ +- +downloading gpt-oss-20b, \d.* MB .*unix:`).Match(list) {
		t.Errorf("ps: %v, %s", err, list)
	}
	joined, err := sameHome(cmd, "chat", "--model", "demo", "--max-tokens", "40", "hi").CombinedOutput()
	if err != nil || strings.Contains(string(joined), "joined") {
		t.Errorf("a chat: %v, %s", err, joined)
	}
	if out, err := sameHome(cmd, "stop").CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "has stopped") {
		t.Errorf("stop: %v, %s", err, out)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(log.String(), "interrupted: ") {
		t.Errorf("stopped: %v, %s", err, log)
	}
	cmd, log = serve()
	stopped := hub.Sent(weights)
	if !happens(func() bool { return hub.Sent(weights) > stopped+4<<20 }) {
		t.Fatalf("nothing is downloaded: %s", log)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	if exit, ok := errors.AsType[*exec.ExitError](cmd.Wait()); !ok || exit.ExitCode() != 130 {
		t.Errorf("interrupted: %v, %s", exit, log)
	}
	first := hub.Sent(weights)
	hub.Throttle(0)
	cmd, log = serve()
	log.until(t, "startup complete")
	if second := hub.Sent(weights) - first; second > 160<<20-first/2 {
		t.Errorf("%d bytes, then %d: it began again", first, second)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil || !strings.Contains(log.String(), "gpt-oss-20b on cpu") {
		t.Errorf("%v, %s", err, log)
	}
}
