package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossrun/ossrun/assets/release/checksums"
)

// signedRelease is the files of release 1.2.3 with this executable, signed by the tests' key, which
// minisign made; a given sum replaces the executable's.
func signedRelease(t *testing.T, sum string) (list, signature []byte) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if digest := sha256.Sum256(program); sum == "" {
		sum = hex.EncodeToString(digest[:])
	}
	list = fmt.Appendf(nil, "%s  %s\n%064d  other.tar.gz\n", sum,
		checksums.Name("1.2.3", runtime.GOOS, runtime.GOARCH), 1)
	signature, err = checksums.Sign(list, testKey(t, "key.sec"), testKey(t, "key.pub"), "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return list, signature
}

func testKey(t *testing.T, name string) string {
	t.Helper()
	key, err := os.ReadFile("../../assets/release/checksums/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}

// asRelease makes this process the executable of a release until the test ends.
func asRelease(t *testing.T, version, key string) {
	t.Helper()
	oldVersion, oldKey, oldWait := Version, releaseKey, releaseWait
	t.Cleanup(func() { Version, releaseKey, releaseWait = oldVersion, oldKey, oldWait })
	Version, releaseKey = version, key
}

func runVersion(t *testing.T, flags ...string) (code int, out, errs string) {
	t.Helper()
	return runHere(t.Context(), append([]string{"version"}, flags...)...)
}

// SECURITY.md: checksums.txt of a release is signed in minisign's format and names its version.
// SECURITY.md: `ossrun version --verify` compares the program with it; minisign and sha256sum
// do without trusting the program ([how](docs/release.md#signed-checksums)).
func TestVersionVerify(t *testing.T) {
	list, signature := signedRelease(t, "")
	others, othersSignature := signedRelease(t, strings.Repeat("0", 64))
	unnamed := []byte("0123  ossrun_1.2.3_plan9_mips\n")
	unnamedSignature, err := checksums.Sign(unnamed, testKey(t, "key.sec"), testKey(t, "key.pub"),
		"1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, file := filepath.Split(r.URL.Path)
		both := map[string][2][]byte{"/good/": {list, signature}, "/moved/": {list, signature},
			"/other/": {others, othersSignature}, "/forged/": {others, signature},
			"/page/": {list, []byte("<html>")}, "/unnamed/": {unnamed, unnamedSignature},
			"/long/": {append(list, bytes.Repeat([]byte("x"), 2<<20)...), signature}}[kind]
		switch {
		case kind == "/silent/":
			<-gone
		case kind == "/sent/":
			http.Redirect(w, r, "/moved/"+file, http.StatusFound) // as GitHub does
		case both[0] == nil:
			http.NotFound(w, r)
		case file == checksums.File:
			_, _ = w.Write(both[0])
		case file == checksums.Signature:
			_, _ = w.Write(both[1])
		}
	}))
	defer server.Close()
	defer close(gone)
	folder := t.TempDir()
	for name, text := range map[string][]byte{checksums.File: list,
		checksums.Signature: signature} {
		write(t, filepath.Join(folder, name), string(text))
	}
	key := testKey(t, "key.pub")
	for name, c := range map[string]struct{ version, key, from, want string }{
		"the release":        {"1.2.3", key, server.URL + "/good", ""},
		"with a slash":       {"1.2.3", key, server.URL + "/good/", ""},
		"elsewhere":          {"1.2.3", key, server.URL + "/sent", ""},
		"a folder":           {"1.2.3", key, folder, ""},
		"no key":             {"1.2.3", checksums.Key, server.URL + "/good", "ossrun: this build has no release key, so it cannot be verified\n"},
		"no release":         {"", key, server.URL + "/good", "this is not the executable of a release. Install one of https://github.com/ossrun/ossrun/releases\n"},
		"another executable": {"1.2.3", key, server.URL + "/other", "is not the one that was released: its SHA-256 is "},
		"forged checksums":   {"1.2.3", key, server.URL + "/forged", "cannot be trusted: the checksums are not those that were signed"},
		"an older release's": {"1.2.4", key, server.URL + "/good", `cannot be trusted: the signature is of "ossrun 1.2.3", not of "ossrun 1.2.4"`},
		"another key":        {"1.2.3", testKey(t, "other.pub"), server.URL + "/good", "is by another key than this build has"},
		"a page":             {"1.2.3", key, server.URL + "/page", "not in minisign's format"},
		"too long":           {"1.2.3", key, server.URL + "/long", "not those that were signed"},
		"not in the list":    {"1.2.3", key, server.URL + "/unnamed", "does not name ossrun_1.2.3_"},
		"no such release":    {"1.2.3", key, server.URL + "/none", "cannot be fetched: HTTP 404. Only releases with signed checksums can be verified"},
		"silence":            {"1.2.3", key, server.URL + "/silent", "cannot be fetched: nothing came in time."},
		"no network":         {"1.2.3", key, "http://127.0.0.1:1", "checksums.txt.minisig of the release here and give their folder to --from"},
		"no folder":          {"1.2.3", key, folder + "/x", "the checksums cannot be read: "},
		"no address":         {"1.2.3", key, "ht tp://x", `--from must be a folder or an address, not "ht tp://x"`},
	} {
		t.Run(name, func(t *testing.T) {
			asRelease(t, c.version, c.key)
			if releaseWait = 2 * time.Minute; name == "silence" {
				releaseWait = 50 * time.Millisecond
			}
			code, out, errs := runVersion(t, "--verify", "--from", c.from)
			if c.want == "" {
				if code != exitOK || errs != "" || !strings.Contains(out, "verified: SHA-256 ") {
					t.Errorf("exit %d: %s%s", code, out, errs)
				}
				_, out, _ = runVersion(t, "--verify", "--json", "--from", c.from)
				if !strings.Contains(out, `"verified":"`+string(list[:64])+`"`) {
					t.Errorf("as JSON: %s", out)
				}
				return
			}
			if code != exitFailure && name != "no address" || out != "" ||
				!strings.Contains(errs, c.want) {
				t.Errorf("exit %d: %s%s", code, out, errs)
			}
		})
	}
	if code, _, errs := runVersion(t, "--from", folder); code != exitUsage {
		t.Errorf("--from alone: exit %d: %s", code, errs)
	}
}

// The environment's proxy is used. Go's client reads it once a process, so the test runs in one of
// its own.
func TestVersionVerifyThroughAProxy(t *testing.T) {
	const child = "OSSRUN_TEST_VERIFIES"
	if from := os.Getenv(child); from != "" {
		asRelease(t, "1.2.3", testKey(t, "key.pub"))
		if code, out, errs := runVersion(t, "--verify", "--from", from); code != exitOK {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
		return
	}
	list, signature := signedRelease(t, "")
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.String() {
		case "http://releases.invalid/v1.2.3/checksums.txt":
			_, _ = w.Write(list)
		case "http://releases.invalid/v1.2.3/checksums.txt.minisig":
			_, _ = w.Write(signature)
		}
		asked.Add(1)
	}))
	defer proxy.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	again := exec.Command(self, "-test.run=^TestVersionVerifyThroughAProxy$")
	again.Env = append(os.Environ(), child+"=http://releases.invalid/v1.2.3",
		"HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "NO_PROXY=", "no_proxy=")
	if out, err := again.CombinedOutput(); err != nil || asked.Load() != 2 {
		t.Errorf("%v, the proxy was asked %d times: %s", err, asked.Load(), out)
	}
}

// goreleaser puts the checksum of every executable into the list, under the name that is looked
// for.
func TestReleaseListsItsExecutables(t *testing.T) {
	text, err := os.ReadFile("../../goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"linux amd64", "linux arm64", "windows amd64", "darwin arm64"} {
		name, arch, _ := strings.Cut(system, " ")
		if want := checksums.Name("{{ .Version }}", name, arch); !strings.Contains(string(text),
			`name_template: "`+want+`"`) {
			t.Errorf("goreleaser.yaml has no checksum for %s", want)
		}
	}
	if n := strings.Count(string(text), "goarch: [amd64, arm64]"); n != 1 ||
		strings.Count(string(text), "goarch:") != 3 {
		t.Error("goreleaser.yaml builds for other systems than these four")
	}
}
