package checkpoint_test

// Folders of ollama, LM Studio and llama.cpp, in those programs' layouts, in a separate home.

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestElsewhere(t *testing.T) {
	home := t.TempDir()
	for name, value := range map[string]string{"HOME": home, "USERPROFILE": home,
		"XDG_CACHE_HOME": filepath.Join(home, "cache"), "OLLAMA_MODELS": "", "LLAMA_CACHE": "",
		"HF_HUB_CACHE": filepath.Join(home, "hub")} {
		t.Setenv(name, value)
	}
	if list := checkpoint.ListForeign(); len(list) != 0 {
		t.Fatalf("in an empty home: %+v", list)
	}
	tiny := hosttest.Must(checkpoint.Open(write(t, modeltest.New(modeltest.Tiny(), 1))))(t)
	t.Cleanup(func() { tiny.Close() })
	writeGGUF := func(folder, stem string, style modeltest.GGUFStyle, files int) string {
		path, err := modeltest.WriteGGUF(tiny, filepath.Join(home, filepath.FromSlash(folder)),
			stem, style, files)
		hosttest.Check(t, err)
		return path
	}
	put := func(path, text string) {
		path = filepath.Join(home, filepath.FromSlash(path))
		hosttest.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		hosttest.Check(t, os.WriteFile(path, []byte(text), 0o644))
	}
	blob := writeGGUF(".ollama/models/blobs", "x", modeltest.Ollama, 1)
	const digest = "b112e727c6f18875636c56a779790a590d705aec9e1c0eb5a97d51fc2a778583"
	hosttest.Check(t, os.Rename(blob, filepath.Join(filepath.Dir(blob), "sha256-"+digest)))
	manifest := fmt.Sprintf(
		`{"layers":[{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:1"},{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s"}]}`, digest)
	put(".ollama/models/manifests/registry.ollama.ai/library/gpt-oss/20b", manifest)
	put(".ollama/models/manifests/registry.ollama.ai/someone/tune/latest", manifest)
	put(".ollama/models/manifests/registry.ollama.ai/library/broken/1b",
		`{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:../../../x"}]}`)
	put(".ollama/models/manifests/registry.ollama.ai/library/gone/1b",
		`{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:00"}]}`)
	writeGGUF(".lmstudio/models/lmstudio-community/gpt-oss-20b-GGUF", "gpt-oss-20b-MXFP4",
		modeltest.LlamaQ8, 1)
	for folder, says := range map[string]string{"moved": ".lmstudio/settings.json",
		"older": ".cache/lm-studio/settings.json", "pointed/models": ".lmstudio-home-pointer"} {
		writeGGUF(folder+"/someone/"+filepath.Dir(folder)+"x-GGUF", filepath.Base(folder),
			modeltest.LlamaQ8, 1)
		text := fmt.Sprintf(`{"downloadsFolder": %q}`, filepath.Join(home, folder))
		if strings.HasPrefix(folder, "pointed") {
			text = filepath.Join(home, "pointed") + "\n"
		}
		put(says, text)
	}
	put("pointed/settings.json", "{")
	put(".lmstudio/models/someone/other/other.gguf", "GGUF\x03\x00\x00\x00")
	writeGGUF(".cache/llama.cpp", "ggml-org_gpt-oss-120b-GGUF_gpt-oss-120b-mxfp4",
		modeltest.LlamaBF16, 2)
	writeGGUF("hub/models--ggml-org--gpt-oss-20b-GGUF/snapshots/0123456789012345678901234567890123456789", "gpt-oss-20b-mxfp4", modeltest.LlamaBF16, 1)
	var names []string
	for _, e := range checkpoint.ListForeign() {
		names = append(names, e.Name)
		if e.Trouble != nil || e.Model == nil || e.Bytes == 0 {
			t.Errorf("%s: %+v", e.Name, e)
		}
	}
	want := []string{"gguf:ggml-org/gpt-oss-20b-GGUF/gpt-oss-20b-mxfp4.gguf",
		"llama.cpp:ggml-org_gpt-oss-120b-GGUF_gpt-oss-120b-mxfp4-00001-of-00002.gguf",
		"lmstudio:lmstudio-community/gpt-oss-20b-GGUF/gpt-oss-20b-MXFP4.gguf",
		"lmstudio:someone/.x-GGUF/moved.gguf", "lmstudio:someone/.x-GGUF/older.gguf",
		"lmstudio:someone/pointedx-GGUF/models.gguf", "ollama:gpt-oss:20b",
		"ollama:someone/tune:latest"}
	if !slices.Equal(names, want) {
		t.Errorf("found %q\n want %q", names, want)
	}
	for name, called := range map[string]string{"ollama:gpt-oss:20b": "gpt-oss-20b",
		"ollama:someone/tune": "tune-latest", want[0]: "gpt-oss-20b-mxfp4",
		want[1]: "ggml-org_gpt-oss-120b-GGUF_gpt-oss-120b-mxfp4"} {
		found, err := checkpoint.Resolve(name)
		if err != nil || found.GGUF == nil || found.Name != called {
			t.Errorf("%s is found as %+v, %v", name, found, err)
			continue
		}
		c, err := found.Open() // converts
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !c.Spec.SameShape(tiny.Spec) {
			t.Errorf("%s has spec %+v", name, c.Spec)
		}
		c.Close()
	}
	put(".ollama/models/manifests/registry.ollama.ai/library/llama3/latest",
		strings.Replace(manifest, digest, "11a3a", 1))
	put("hub/models--someone--tune/snapshots/0123456789012345678901234567890123456789/"+
		"adapter_config.json", "{}")
	for _, path := range []string{".ollama/models/blobs/sha256-11a3a",
		".lmstudio/models/a/b/llama.gguf", ".cache/llama.cpp/llama.gguf", "other/llama.gguf",
		"hub/models--x--llama-GGUF/snapshots/0123456789012345678901234567890123456789/llama.gguf",
	} {
		put(path, "GGUF\x03\x00\x00\x00"+strings.Repeat("\x00", 8)+"\x01"+strings.Repeat("\x00", 7)+
			"\x14"+strings.Repeat("\x00", 7)+"general.architecture\x08\x00\x00\x00"+
			"\x05"+strings.Repeat("\x00", 7)+"llama"+strings.Repeat("\x00", 64))
	}
	const llama = " is a model of architecture llama, and ossrun runs gpt-oss only: run it with " +
		"llama.cpp, Ollama or vLLM, or run ossrun pull 20b"
	for name, want := range map[string]string{
		"ollama:llama3":                     "ollama:llama3:latest" + llama,
		"ollama:llama3:latest":              "ollama:llama3:latest" + llama,
		"lmstudio:a/b/llama.gguf":           "lmstudio:a/b/llama.gguf" + llama,
		"llama.cpp:llama.gguf":              "llama.cpp:llama.gguf" + llama,
		"gguf:x/llama-GGUF/llama.gguf":      "gguf:x/llama-GGUF/llama.gguf" + llama,
		"hf:x/llama-GGUF":                   "x/llama-GGUF: llama.gguf" + llama,
		filepath.Join(home, "other"):        "other: llama.gguf" + llama,
		"lmstudio:someone/other/other.gguf": "lmstudio:someone/other/other.gguf is cut short",
		"ollama:gone:1b":                    "ollama:gone:1b is listed by ollama, and its weights are missing",
		"ollama:gpt-oss:120b":               "ollama:gpt-oss:120b is not among the weights of other programs here",
		"hf:someone/tune": "someone/tune holds a LoRA adapter, not a model: choose its base model, " +
			"and add --lora hf:someone/tune",
	} {
		found, err := checkpoint.Resolve(name)
		if err == nil {
			_, err = found.Open()
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", name, err, want)
		}
	}
	if now := checkpoint.ListForeign(); len(now) != len(want) {
		t.Errorf("other models are listed: %+v", now)
	}
}
