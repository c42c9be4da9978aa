package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// No secret, and nothing that names a person or a machine, is in a bundle, however it is written.
func TestBundleShowsNoSecret(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("HF_TOKEN", "hf_abcdefghijklmnopqrstuv")
	t.Setenv("EXA_API_KEY", "secret-of-exa")
	t.Setenv("HTTPS_PROXY", "http://me:hunter2@proxy.example:8080")
	t.Setenv("HF_ENDPOINT", "https://mirror.example")
	host := hosttest.Must(os.Hostname())(t)
	config := "model: 20b\napi-key: secret-of-the-port\nbrave_token : secret-of-brave\n" +
		"# curl -H 'Authorization: Bearer secret-of-bearer'\nhost: 192.168.7.9\n" +
		"mcp: {env: {X: sk-secretsecretsecretsecret}}\nport: 8000\nlocal: 127.0.0.1\n"
	var b bytes.Buffer
	bundle := Bundle{Version: "ossrun 1 on " + host, Config: []byte(config), Time: time.Unix(9, 0),
		Names:  []string{"HF_TOKEN", "EXA_API_KEY", "HTTPS_PROXY", "HF_ENDPOINT", "NOT_SET_AT_ALL"},
		Report: &Report{Cache: Cache{Path: home + "/.cache/huggingface/hub", Used: 7}}}
	hosttest.Check(t, bundle.Write(&b))
	z := hosttest.Must(gzip.NewReader(&b))(t)
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		text, err2 := io.ReadAll(r)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		files[strings.TrimPrefix(h.Name, "ossrun-report/")] = string(text)
	}
	if len(files) != 4 {
		t.Errorf("%d files", len(files))
	}
	for name, text := range files {
		for _, secret := range []string{"secret", "hf_abc", "hunter2", home, "192.168", "me:"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %q:\n%s", name, secret, text)
			}
		}
	}
	if len(host) > 2 && strings.Contains(files["version.txt"], host) {
		t.Error(files["version.txt"])
	}
	for name, want := range map[string]string{"doctor.json": `"path": "~/.cache/huggingface/hub"`,
		"config.yaml": "model: 20b\napi-key: [taken out]\n", "environment.txt": "HF_TOKEN=[taken out]",
		"version.txt": "ossrun 1 on"} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s lacks %q:\n%s", name, want, files[name])
		}
	}
	for _, kept := range []string{"port: 8000", "127.0.0.1"} {
		if !strings.Contains(files["config.yaml"], kept) {
			t.Errorf("%s went too:\n%s", kept, files["config.yaml"])
		}
	}
	if !strings.Contains(files["environment.txt"], "HF_ENDPOINT=https://mirror.example") ||
		strings.Contains(files["environment.txt"], "NOT_SET") {
		t.Error(files["environment.txt"])
	}
}
