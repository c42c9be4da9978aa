package checkpoint_test

// Files and folders that are no checkpoint, or a damaged one.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestRefuseFiles(t *testing.T) {
	const (
		first  = "model-00000-of-00001.safetensors"
		second = "model-00001-of-00001.safetensors"
		again  = ": download or copy it again"
	)
	edit := func(name string, change func(text []byte) []byte) func(t *testing.T, folder string) {
		return func(t *testing.T, folder string) {
			text := hosttest.Must(os.ReadFile(filepath.Join(folder, name)))(t)
			hosttest.Check(t, os.WriteFile(filepath.Join(folder, name), change(text), 0o644))
		}
	}
	become := func(text string) func([]byte) []byte {
		return func([]byte) []byte {
			return []byte(
				text)
		}
	}
	remove := func(names ...string) func(t *testing.T, folder string) {
		return func(t *testing.T, folder string) {
			for _, name := range names {
				hosttest.Check(t, os.Remove(filepath.Join(folder, name)))
			}
		}
	}
	for _, test := range []struct {
		name   string
		change func(t *testing.T, folder string)
		want   string
	}{
		{"cut by a byte", edit(second, func(text []byte) []byte { return text[:len(text)-1] }),
			second + " is cut short: tensor lm_head.weight needs bytes 66692..78980, the file " +
				"has 78979" + again},
		{"cut in half", edit(second, func(text []byte) []byte { return text[:len(text)/2] }),
			second + " is cut short: tensor model.layers.1.self_attn.o_proj.weight needs bytes " +
				"35320..51704, the file has 39490" + again},
		{"cut in the header", edit(first, func(text []byte) []byte { return text[:100] }),
			first + " is cut short: its header needs bytes 8..2176, the file has 100" + again},
		{"empty", edit(first, become("")), first +
			" is cut short: a safetensors file begins with 8 bytes of header length, this file " +
			"has 0" + again},
		{"longer", edit(first, func(text []byte) []byte { return append(text, "tail"...) }),
			first + " is 4 bytes longer than its tensors: bytes 79244..79248 belong to no tensor"},
		{"lfs pointer", edit(first,
			become("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")),
			first + " is a Git LFS pointer, not the weights: run git lfs pull in its folder"},
		{"web page", edit(first, become("<!DOCTYPE html><html></html>")), first +
			" is a web page, not the weights: the download saved an error page"},
		{"gguf under its name", edit(first, become("GGUF\x03\x00\x00\x00\x00\x00\x00\x00")), first +
			" is a GGUF file under another name: give its own path to --model"},
		{"zeros", edit(first, func(text []byte) []byte { return make([]byte, len(text)) }), first +
			" is not a safetensors file: it announces a header of 0 bytes"},
		{"shard missing", remove(second), second +
			" is missing, which model.safetensors.index.json lists" + again},
		{"index missing", remove("model.safetensors.index.json"),
			"model.safetensors.index.json is missing" + again},
		{"no weights", remove("model.safetensors.index.json", first, second),
			"model.safetensors is missing" + again},
		{"index cut", edit("model.safetensors.index.json",
			func(text []byte) []byte { return text[:len(text)/2] }),
			"model.safetensors.index.json is broken: unexpected end of JSON input" + again},
		{"index empty", edit("model.safetensors.index.json", become("{}")),
			"model.safetensors.index.json lists no tensor in weight_map"},
		{"index leads out", edit("model.safetensors.index.json",
			become(`{"weight_map": {"lm_head.weight": "../secret"}}`)),
			"model.safetensors.index.json places tensor lm_head.weight in ../secret, which is " +
				"not a " +
				"plain file name"},
		{"index of another download", edit("model.safetensors.index.json",
			func(text []byte) []byte {
				return []byte(strings.Replace(string(text), `"lm_head.weight": "`+second,
					`"lm_head.weight": "`+first, 1))
			}), second + " holds tensor lm_head.weight, which model.safetensors.index.json " +
			"places in " +
			first + ": the files are of different downloads"},
		{"index lists more", edit("model.safetensors.index.json", func(text []byte) []byte {
			return []byte(strings.Replace(string(text), `"lm_head.weight"`, `"lm_head.bias"`, 1))
		}), ""},
		{"config missing", remove("config.json"),
			"tune has no config.json beside its safetensors: download config.json too"},
		{"config empty", edit("config.json", become("")),
			"config.json is not a JSON object: unexpected end of JSON input"},
		{"config is a list", edit("config.json", become("[]")),
			"config.json is not a JSON object: json: cannot unmarshal array into Go value of type " +
				"map[string]json.RawMessage"},
		{"config is null", edit("config.json", become("null")), "config.json is not a JSON object"},
		{"config is a pointer",
			edit("config.json", become("version https://git-lfs.github.com/spec/v1\n")),
			"config.json is a Git LFS pointer, not the file: run git lfs pull in its folder"},
		{"config in Latin-1", edit("config.json", become("{\"a\": \"\xe9\"}")),
			"config.json is not UTF-8"},
		{"generation config broken", edit("generation_config.json", become("{")),
			"generation_config.json is not a JSON object: unexpected end of JSON input"},
		{"shard is a folder", func(t *testing.T, folder string) {
			remove(first)(t, folder)
			hosttest.Check(t, os.Mkdir(filepath.Join(folder, first), 0o755))
		}, first + " is not a regular file"},
		{"dangling link", func(t *testing.T, folder string) {
			remove(first)(t, folder)
			hosttest.Check(t, os.Symlink("../../blobs/gone", filepath.Join(folder, first)))
		}, first + " is missing, which model.safetensors.index.json lists" + again},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := write(t, modeltest.New(modeltest.Tiny(), 2))
			test.change(t, folder)
			// an index may list missing tensors that no layer needs
			if test.want == "" {
				c := hosttest.Must(checkpoint.Open(folder))(t)
				c.Close()
				return
			}
			refuse(t, folder, test.want)
		})
	}
}

func TestRefuseFolders(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		open  string // the file in the folder to open, "" for the folder
		want  string
	}{
		{"empty", nil, "",
			"it is an empty folder: point at one with config.json and model.safetensors"},
		{"anything", map[string]string{"notes.txt": ""}, "",
			"it has no config.json: point at a folder with config.json and model.safetensors"},
		{"gguf folder", map[string]string{"gpt-oss-20b-mxfp4.gguf": "GGUF"}, "",
			"it holds GGUF files, llama.cpp's format: give the path of the file to --model"},
		{"gguf file", map[string]string{"a.gguf": "GGUF"}, "a.gguf",
			"a.gguf is cut short: its header needs more than the 4 bytes of the file"},
		{"gguf without its ending", map[string]string{"blob": "GGUF\x03\x00\x00\x00"}, "blob",
			"blob is cut short: its header needs more than the 8 bytes of the file"},
		{"weights file", map[string]string{"model.safetensors": "x"}, "model.safetensors",
			"model.safetensors is one file of a checkpoint: point at its folder"},
		{"some file", map[string]string{"a.txt": "hello"}, "a.txt",
			"a.txt is a file: point at a folder with config.json and model.safetensors"},
		{"adapter", map[string]string{"adapter_config.json": "{}",
			"adapter_model.safetensors": "x"}, "",
			"it holds a LoRA adapter, not a model: choose its base model, and add --lora FOLDER"},
		{"original", map[string]string{"dtypes.json": "{}", "model.safetensors": "x"}, "",
			"it has no config.json beside its safetensors: download config.json too"},
		{"original only", map[string]string{"original/dtypes.json": "{}", "README.md": ""}, "",
			"it has an original/ folder without a config.json of that layout: download original/ " +
				"again"},
		{"metal", map[string]string{"model.bin": "x"}, "",
			"it holds the weights for Metal, which OpenAI ships beside the ones that ossrun " +
				"reads: point at the folder above it"},
		{"pytorch", map[string]string{"consolidated.00.pth": "x"}, "",
			"it holds PyTorch files without a config.json: " + Advice},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "it")
			hosttest.Check(t, os.Mkdir(folder, 0o755))
			for name, text := range test.files {
				path := filepath.Join(folder, name)
				hosttest.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
				hosttest.Check(t, os.WriteFile(path, []byte(text), 0o644))
			}
			refuse(t, filepath.Join(folder, test.open),
				strings.Replace(test.want, "FOLDER", folder, 1))
		})
	}
	t.Run("nothing there", func(t *testing.T) {
		refuse(t, "no/such/folder", "there is no folder no/such/folder: file does not exist")
	})
	t.Run("pickles", func(t *testing.T) {
		c := modeltest.New(modeltest.Tiny(), 1)
		folder := write(t, c)
		hosttest.Check(t, os.Rename(filepath.Join(folder, "model.safetensors"),
			filepath.Join(folder, "pytorch_model.bin")))
		refuse(t, folder,
			"tune holds PyTorch pickles, which can run code when they are read: "+Advice)
	})
}
