package checkpoint_test

// From a name to a folder, in a cache laid out as the Hugging Face tools do it: snapshots of links
// into blobs.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// cache makes an empty Hugging Face cache, to which the environment points.
func cache(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "hub")
	t.Setenv("HF_HUB_CACHE", root)
	return root
}

// put places a checkpoint in the cache as a commit of repo and returns the snapshot's folder.
func put(t *testing.T, root, repo, commit string, main bool, c *modeltest.Checkpoint) string {
	t.Helper()
	base := filepath.Join(root, "models--"+strings.ReplaceAll(repo, "/", "--"))
	snapshot, blobs := filepath.Join(base, "snapshots", commit), filepath.Join(base, "blobs")
	for _, folder := range []string{snapshot, blobs, filepath.Join(base, "refs")} {
		hosttest.Check(t, os.MkdirAll(folder, 0o755))
	}
	written := write(t, c)
	files := hosttest.Must(os.ReadDir(written))(t)
	for _, f := range files {
		blob := commit + "-" + f.Name()
		hosttest.Check(t, os.Rename(filepath.Join(written, f.Name()), filepath.Join(blobs, blob)))
		hosttest.Check(t, os.Symlink(filepath.Join("..", "..", "blobs", blob),
			filepath.Join(snapshot, f.Name())))
	}
	if main {
		hosttest.Check(t, os.WriteFile(filepath.Join(base, "refs", "main"), []byte(commit), 0o644))
	}
	return snapshot
}

func TestLookup(t *testing.T) {
	for name, want := range map[string]string{
		"20b": "20b", "20B": "20b", " 20b ": "20b", "gpt-oss": "20b", "gpt-oss:20b": "20b",
		"gpt-oss:latest": "20b", "gpt-oss-20b": "20b",
		"GPT-OSS-20B": "20b", "openai/gpt-oss-20b": "20b", "OpenAI/GPT-OSS-20b": "20b",
		"hf:openai/gpt-oss-20b":                      "20b",
		"https://huggingface.co/openai/gpt-oss-20b":  "20b",
		"https://huggingface.co/openai/gpt-oss-20b/": "20b", "hf.co/openai/gpt-oss-20b": "20b",
		"120b": "120b", "gpt-oss:120b": "120b", "openai/gpt-oss-120b": "120b",
		"gpt-oss-120b": "120b", "demo": "demo", "Demo": "demo",
	} {
		if e, ok := models.Lookup(name); !ok || e.ID != want {
			t.Errorf("%q is %q, %v, want %s", name, e.ID, ok, want)
		}
	}
	for _, name := range []string{"", "30b", "hf:20b", "hf:", "openai", "openai/",
		"hf:openai/gpt-oss-20b@main", "gpt-oss-20b-base"} {
		if e, ok := models.Lookup(name); ok {
			t.Errorf("%q is taken as %s", name, e.ID)
		}
	}
}

func TestCatalogue(t *testing.T) {
	names := map[string]bool{}
	for _, e := range models.Catalogue() {
		for _, name := range append([]string{e.ID}, e.Aliases...) {
			if names[name] {
				t.Errorf("%s stands for two models", name)
			}
			names[name] = true
			if name != strings.ToLower(name) {
				t.Errorf("%s is not in lower case", name)
			}
		}
		if e.Spec.Layers == 0 || e.Spec.Name == "" {
			t.Errorf("%s has spec %+v", e.ID, e.Spec)
		}
		if (e.HF != "") != (e.DownloadBytes > 0) {
			t.Errorf("%s has %d bytes to fetch from %q", e.ID, e.DownloadBytes, e.HF)
		}
	}
	e, _ := models.Lookup("20b")
	if e.DownloadBytes != 13_761_264_768+27_868_174 || e.HF != "openai/gpt-oss-20b" {
		t.Errorf("20b is %+v", e)
	}
}

func TestResolveNothing(t *testing.T) {
	cache(t)
	t.Chdir(t.TempDir())
	for _, test := range []struct{ name, want string }{
		{"20b", "gpt-oss-20b is not downloaded: run ossrun pull 20b (13.8 GB)"},
		{"openai/gpt-oss-120b", "gpt-oss-120b is not downloaded: run ossrun pull 120b (65.3 GB)"},
		{"hf:someone/tune", "someone/tune is not downloaded: run ossrun pull hf:someone/tune"},
		{"hf:someone/tune@v2", "someone/tune@v2 is not downloaded: run ossrun pull hf:someone/tune@v2"},
		{"hf:openai/gpt-oss-20b@v2", "openai/gpt-oss-20b@v2 is not downloaded: run ossrun pull hf:openai/gpt-oss-20b@v2"},
	} {
		_, err := checkpoint.Resolve(test.name)
		var missing *checkpoint.NotCachedError
		if !errors.As(err, &missing) || err.Error() != test.want {
			t.Errorf("%s gives %v, want %s", test.name, err, test.want)
		}
	}
	for _, test := range []struct{ name, want string }{
		{"gpt-os:20b", "unknown model gpt-os:20b: did you mean gpt-oss:20b?"},
		{"gpt-oss-02b", "unknown model gpt-oss-02b: did you mean gpt-oss-20b?"},
		{"gtp-oss-120b", "unknown model gtp-oss-120b: did you mean gpt-oss-120b?"},
		{"deom", "unknown model deom: did you mean demo?"},
		{"openai/gptoss-20b",
			"unknown model openai/gptoss-20b: did you mean openai/gpt-oss-20b?"},
		{"llama3", "unknown model llama3; try demo, 20b, 120b, hf:owner/name or a folder"},
		{"someone/some-tune",
			"unknown model someone/some-tune; for a Hugging Face repository write " +
				"hf:someone/some-tune"},
		{"./nothing/here",
			"unknown model ./nothing/here; try demo, 20b, 120b, hf:owner/name or a folder"},
		{"", `unknown model ""; try demo, 20b, 120b, hf:owner/name or a folder`},
	} {
		_, err := checkpoint.Resolve(test.name)
		var unknown *models.UnknownModelError
		if !errors.As(err, &unknown) || err.Error() != test.want {
			t.Errorf("%q gives\n      %v\nwant: %s", test.name, err, test.want)
		}
	}
	for name, want := range map[string]string{
		"hf:tune": "hf:tune is not a Hugging Face repository: write hf:owner/name or " +
			"hf:owner/name@revision",
		"hf:../../etc": "hf:../../etc is not a Hugging Face repository: write hf:owner/name " +
			"or hf:owner/name@revision",
		"hf:a/b@": "hf:a/b@ names no revision after the @: write a branch, a tag or a " +
			"commit",
		"hf:a/b@../../../..": "hf:a/b@../../../.. names no revision after the @: write a branch, " +
			"a tag or a commit",
	} {
		if _, err := checkpoint.Resolve(name); err == nil || err.Error() != want {
			t.Errorf("%s gives\n      %v\nwant: %s", name, err, want)
		}
	}
	if list, err := checkpoint.Cached(); err != nil || list != nil {
		t.Errorf("an empty cache lists %v, %v", list, err)
	}
	if found, ok := checkpoint.BestFit(1 << 50); ok {
		t.Errorf("an empty cache fits %+v", found)
	}
}

func TestResolveDemo(t *testing.T) {
	found, err := checkpoint.Resolve("demo")
	if err != nil || !found.Demo || !found.Complete || found.Name != "demo" || found.ID != "demo" ||
		found.Path != "" {
		t.Fatalf("the demo is %+v, %v", found, err)
	}
	c := hosttest.Must(found.Open())(t)
	c.Close()
}

func TestResolveCached(t *testing.T) {
	root := cache(t)
	t.Chdir(t.TempDir())
	old := put(t, root, "openai/gpt-oss-20b", strings.Repeat("a", 40), false,
		modeltest.New(modeltest.Tiny(), 3))
	current := put(t, root, "openai/gpt-oss-20b", strings.Repeat("b", 40), true,
		modeltest.New(modeltest.Tiny(), 3))
	tune := put(t, root, "someone/tune", strings.Repeat("c", 40), true,
		modeltest.New(modeltest.Tiny(), 1))

	for _, test := range []struct{ name, path, found string }{
		{"20b", current, "gpt-oss-20b"},
		{"openai/gpt-oss-20b", current, "gpt-oss-20b"},
		{"hf:openai/gpt-oss-20b@main", current, "gpt-oss-20b"},
		{"hf:openai/gpt-oss-20b@aaaaaaa", old, "gpt-oss-20b"},
		{"hf:someone/tune", tune, "tune"},
		{"someone/tune", tune, "tune"},
		{tune, tune, "tune"},
		{filepath.Join(root, "models--someone--tune"), tune, "tune"},
	} {
		found, err := checkpoint.Resolve(test.name)
		if err != nil || found.Path != test.path || found.Name != test.found || !found.Complete ||
			found.Bytes < 150_000 {
			t.Errorf("%s is %+v, %v, want %s", test.name, found, err, test.path)
			continue
		}
		c, err := found.Open()
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if c.Spec.Name != test.found || c.Path != test.path {
			t.Errorf("%s opens as %s at %s", test.name, c.Spec.Name, c.Path)
		}
		c.Close()
	}

	// The newest download stops half way: the previous complete one is still resolved.
	shard := filepath.Join(current, "model-00001-of-00002.safetensors")
	hosttest.Check(t, os.Truncate(shard, 50_000))
	if found, err := checkpoint.Resolve("20b"); err != nil || found.Path != old || !found.Complete {
		t.Errorf("with a cut download 20b is %+v, %v", found, err)
	}
	pinned, err := checkpoint.Resolve("hf:openai/gpt-oss-20b@main")
	if err != nil || pinned.Path != current || pinned.Complete || pinned.ID != "20b" {
		t.Fatalf("the cut download itself is %+v, %v", pinned, err)
	}
	_, err = pinned.Open()
	if err == nil || !strings.HasPrefix(err.Error(),
		"model-00001-of-00002.safetensors is cut short: tensor ") ||
		!strings.HasSuffix(err.Error(),
			", the file has 50000: download it again with ossrun pull 20b") {
		t.Errorf("opening it gives %v", err)
	}
	hosttest.Check(t, os.Remove(shard))
	want := "model-00001-of-00002.safetensors is missing, which model.safetensors.index.json " +
		"lists: download it again with ossrun pull 20b"
	if _, err := pinned.Open(); err == nil || err.Error() != want {
		t.Errorf("opening it gives %v, want %s", err, want)
	}
	for _, name := range []string{"config.json", "model.safetensors.index.json"} {
		hosttest.Check(t, os.Remove(filepath.Join(old, name)))
		if found, err := checkpoint.Resolve("20b"); err != nil || found.Complete {
			t.Errorf("without %s 20b is %+v, %v", name, found, err)
		}
	}
}

func TestResolveFolder(t *testing.T) {
	cache(t)
	t.Chdir(t.TempDir())
	hosttest.Check(t, modeltest.New(modeltest.Tiny(), 2).Write("tune"))
	hosttest.Check(t, modeltest.New(modeltest.Tiny(), 2).Write("20b"))
	for name, want := range map[string]string{"tune": "tune", "./tune": "tune", "tune/": "tune",
		"./20b": "20b"} {
		found, err := checkpoint.Resolve(name)
		if err != nil || found.Name != want || found.ID != "" || !found.Complete ||
			!filepath.IsAbs(found.Path) {
			t.Errorf("%s is %+v, %v", name, found, err)
		}
	}
	var missing *checkpoint.NotCachedError
	if _, err := checkpoint.Resolve("20b"); !errors.As(err, &missing) {
		t.Errorf("the folder 20b shadows the model: %v", err)
	}
	if _, err := checkpoint.Resolve("tune/config.json"); err == nil ||
		err.Error() != "config.json is one file of a checkpoint: point at its folder" {
		t.Errorf("a file gives %v", err)
	}
	hosttest.Check(t, os.Mkdir("empty", 0o755))
	found, err := checkpoint.Resolve("empty")
	if err != nil || found.Complete {
		t.Fatalf("an empty folder is %+v, %v", found, err)
	}
	if _, err := found.Open(); err == nil ||
		err.Error() != "empty is an empty folder: point at one with config.json and "+
			"model.safetensors" {
		t.Errorf("opening it gives %v", err)
	}
}

func TestBestFit(t *testing.T) {
	root := cache(t)
	put(t, root, "openai/gpt-oss-20b", strings.Repeat("a", 40), true,
		modeltest.New(modeltest.Tiny(), 3))
	big := modeltest.Tiny()
	big.Experts = 8
	snapshot := put(t, root, "openai/gpt-oss-120b", strings.Repeat("b", 40), true,
		modeltest.New(big, 3))
	put(t, root, "someone/tune", strings.Repeat("c", 40), true, modeltest.New(big, 1))

	list, err := checkpoint.Cached()
	if err != nil || len(list) != 2 || list[0].ID != "20b" || list[1].ID != "120b" {
		t.Fatalf("cached are %+v, %v", list, err)
	}
	small, large := list[0].Bytes, list[1].Bytes
	if small >= large {
		t.Fatalf("20b has %d bytes, 120b %d", small, large)
	}
	fits := func(free int64) string {
		found, ok := checkpoint.BestFit(free)
		return fmt.Sprint(found.ID, ok)
	}
	for free, want := range map[int64]string{0: "false", small - 1: "false", small: "20btrue",
		large - 1: "20btrue", large: "120btrue"} {
		if got := fits(free); got != want {
			t.Errorf("%d free bytes fit %s, want %s", free, got, want)
		}
	}
	hosttest.Check(t, os.Remove(filepath.Join(snapshot, "model-00001-of-00002.safetensors")))
	if got := fits(large); got != "20btrue" {
		t.Errorf("an incomplete 120b is chosen: %s", got)
	}
}
