package vllm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// The file is the published one, byte for byte.
func TestVocabulary(t *testing.T) {
	folder := t.TempDir()
	for range 2 {
		if err := WriteVocabulary(folder); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(folder, VocabularyFile))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	const published = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
	if got := hex.EncodeToString(sum[:]); got != published {
		t.Errorf("the hash of %d bytes is %s", len(b), got)
	}
}

// fake puts an executable of this name on the path.
func fake(t *testing.T, name, script string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script),
		0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":/usr/bin:/bin")
}

// when is a log that calls then at words.
type when struct {
	words string
	then  func()
	*strings.Builder
}

func (w when) Write(line []byte) (int, error) {
	if strings.Contains(string(line), w.words) {
		w.then()
	}
	return w.Builder.Write(line)
}

func (w when) WriteString(line string) (int, error) { return w.Write([]byte(line)) }

func TestRunWatchesTheLog(t *testing.T) {
	defer goleak.VerifyNone(t)
	folder := t.TempDir()
	fake(t, "vllm", `trap 'echo stopped >> arguments; exit 0' INT
echo "$@" > arguments
echo "$VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8" >> arguments
echo "$VLLM_API_KEY" >> arguments
echo "CUDA out of memory" >&2
echo "CUDA out of memory" >&2
echo 'INFO:     127.0.0.1:40130 - "GET /health HTTP/1.1" 200 OK'
echo 'INFO:     127.0.0.1:40130 - "GET /health HTTP/1.1" 503 Service Unavailable'
echo "INFO: Application startup complete."
while :; do sleep 0.05; done
`)
	p, err := Make(Request{Hardware: "B200", Model: "120b", Launch: "local",
		Version: "v0.17.0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("VLLM_API_KEY", "of the port in front")
	p.Key = "secret"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := when{"startup complete", cancel, &strings.Builder{}}
	var troubles []string
	if err := Run(ctx, p, folder, Watcher{Log: log,
		Trouble: func(t Trouble) { troubles = append(troubles, t.Name) }}); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(filepath.Join(folder, "arguments"))
	if want := "serve openai/gpt-oss-120b --config GPT-OSS_Blackwell.yaml --tensor-parallel-size " +
		"1\n1\nsecret\nstopped\n"; string(b) != want {
		t.Errorf("%q", b)
	}
	if fmt.Sprint(troubles) != "[a GPU is out of memory]" ||
		!strings.Contains(log.String(), "startup") || !strings.Contains(log.String(), "Unavailable") ||
		strings.Contains(log.String(), "200 OK") {
		t.Errorf("%q, %q", troubles, log.String())
	}
	if b, _ = os.ReadFile(filepath.Join(folder, "GPT-OSS_Blackwell.yaml")); string(b) != p.YAML() {
		t.Errorf("the config is %q", b)
	}
}

// Secrets reach the container by name, and are in no process's arguments.
func TestRunHidesSecrets(t *testing.T) {
	folder := t.TempDir()
	fake(t, "docker", `[ "$1" = image ] && exit 0
tr '\0' ' ' < /proc/$$/cmdline > arguments
echo "$HF_TOKEN $VLLM_API_KEY" > variables
`)
	t.Setenv("HF_TOKEN", "hf_secret")
	for _, version := range []string{"", "0.12.0"} {
		for _, hardware := range []string{"H200", "MI300X"} {
			p, err := Make(Request{Hardware: hardware, Model: "20b", HasFront: true, Port: 4321,
				Host: "127.0.0.1", Version: version, HFHome: "/weights"})
			if err != nil {
				t.Fatal(err)
			}
			p.Key = "key-secret"
			if err := Run(t.Context(), p, folder, Watcher{}); err != nil {
				t.Fatal(err)
			}
			arguments, _ := os.ReadFile(filepath.Join(folder, "arguments"))
			variables, _ := os.ReadFile(filepath.Join(folder, "variables"))
			if text := string(arguments); strings.Contains(text, "secret") ||
				!strings.Contains(text, " -e HF_TOKEN ") ||
				!strings.Contains(text, " -e VLLM_API_KEY ") {
				t.Errorf("%s: docker is started as %s", hardware, text)
			}
			if string(variables) != "hf_secret key-secret\n" {
				t.Errorf("%s: docker has %s", hardware, variables)
			}
		}
	}
}

func TestRunFails(t *testing.T) {
	p, err := Make(Request{Hardware: "H200", Model: "20b"})
	if err != nil {
		t.Fatal(err)
	}
	fake(t, "docker", "[ $1 = run ] && exit 3 || exit 0\n")
	if err := Run(t.Context(), p, t.TempDir(), Watcher{}); err == nil ||
		!strings.Contains(err.Error(), "vLLM ended: exit status 3") {
		t.Error(err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := Run(t.Context(), p, t.TempDir(), Watcher{}); err == nil ||
		!strings.Contains(err.Error(), "--launch") {
		t.Error(err)
	}
}

// The image is pulled and named before the first start, and not again.
func TestRunPullsTheImage(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	fake(t, "docker", `echo "$@" >> `+log+`
[ "$1" != image ] || [ -f `+log+`.there ]
`)
	p, err := Make(Request{Hardware: "H200", Model: "20b", Version: "0.12.0", HFHome: "/weights"})
	if err != nil {
		t.Fatal(err)
	}
	run := func() []string {
		_ = os.Remove(log)
		if err := Run(t.Context(), p, t.TempDir(), Watcher{}); err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(log)
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
	first := run()
	if len(first) != 4 || first[1] != "pull --platform linux/amd64 vllm/vllm-openai:v0.12.0" ||
		first[2] != "tag vllm/vllm-openai:v0.12.0 vllm/vllm-openai:deploy" ||
		!strings.HasPrefix(first[3], "run --gpus all ") ||
		!strings.Contains(first[3], " -v /weights:/weights ") {
		t.Errorf("%q", first)
	}
	if err := os.WriteFile(log+".there", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if again := run(); len(again) != 2 || !strings.HasPrefix(again[1], "run ") {
		t.Errorf("%q", again)
	}
}
