//go:build unix

package lora_test

// Other files at the path of an adapter's folder, including pipes.

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestRefusedFolders: the error describes a path without an adapter, and does not wait for it.
func TestRefusedFolders(t *testing.T) {
	good := modeltest.NewAdapter(modeltest.Tiny(), "q_proj.weight")
	make := func(changes ...func(folder string) error) string {
		folder := filepath.Join(t.TempDir(), "it")
		hosttest.Check(t, good.Write(folder))
		for _, change := range changes {
			hosttest.Check(t, change(folder))
		}
		return folder
	}
	pipe := func(path string) error {
		os.Remove(path)
		return unix.Mkfifo(path, 0o600)
	}
	file := func(name, content string) func(string) error {
		return func(folder string) error {
			return os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600)
		}
	}
	gone := func(name string) func(string) error {
		return func(folder string) error { return os.Remove(filepath.Join(folder, name)) }
	}
	alone := filepath.Join(t.TempDir(), "pipe")
	hosttest.Check(t, pipe(alone))
	for _, test := range []struct{ name, folder, want string }{
		{"nothing", filepath.Join(t.TempDir(), "no"), "there is no folder "},
		{"a pipe", alone, "pipe is not a folder. Give the one that holds adapter_config.json"},
		{"a file of it", filepath.Join(make(gone(models.LoRAConfig)),
			lora.WeightsName), "is not a folder"},
		{"a piped config", make(func(f string) error {
			return pipe(filepath.Join(f, models.LoRAConfig))
		}), "adapter_config.json is not a regular file"},
		{"piped weights", make(func(f string) error { return pipe(filepath.Join(f, lora.WeightsName)) }),
			"adapter_model.safetensors is not a regular file"},
		{"no config", make(gone(models.LoRAConfig)), "has no adapter_config.json"},
		{"a model", make(gone(models.LoRAConfig), file("config.json", "{}")), "is a model, not an " +
			"adapter: choose it with --model /"},
		{"a model's GGUF", filepath.Join(make(file("a.gguf", ggufOf("gpt-oss", "model"))), "a.gguf"),
			"a.gguf is a model, not an adapter: choose it with --model /"},
		{"an adapter's GGUF", filepath.Join(make(file("a.gguf", ggufOf("gpt-oss", "adapter"))),
			"a.gguf"), "a.gguf is an adapter for llama.cpp, not a model: give --lora the folder"},
		{"another model's GGUF", filepath.Join(make(file("a.gguf", ggufOf("llama", "model"))),
			"a.gguf"), "a.gguf is a model of architecture llama, and ossrun runs gpt-oss only"},
		{"no GGUF", filepath.Join(make(file("a.gguf", "PK")), "a.gguf"), "a.gguf is cut short"},
		{"pickles", make(gone(lora.WeightsName)), "has no adapter_model.safetensors: save the adapter " +
			"with PEFT's save_pretrained, as safetensors"},
		{"a broken config", make(file(models.LoRAConfig, "{")), "adapter_config.json is not a " +
			"JSON object"},
		{"a pointer", make(file(lora.WeightsName, "version https://git-lfs.github.com/spec/v1\n")),
			"is a Git LFS pointer"},
		{"a cut file", make(file(lora.WeightsName, "\x40\x00\x00\x00\x00\x00\x00\x00{")),
			"adapter_model.safetensors is cut short"},
	} {
		t.Run(test.name, func(t *testing.T) {
			refused(t, test.folder, modeltest.Tiny(), test.want)
		})
	}
	for _, name := range []string{"20b", "demo", "gpt-oss:120b", "ollama:llama3", "gguf:a/b/c.gguf"} {
		want := name + " is a model, not an adapter: choose it with --model " + name
		if _, err := lora.Find(name); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// ggufOf is a GGUF file of no tensors.
func ggufOf(architecture, kind string) string {
	text := func(s string) string {
		return string(binary.LittleEndian.AppendUint64(nil, uint64(len(s)))) + s
	}
	value := "\x08\x00\x00\x00"
	return "GGUF\x03\x00\x00\x00" + strings.Repeat("\x00", 8) + "\x02" + strings.Repeat("\x00", 7) +
		text("general.architecture") + value + text(architecture) + text("general.type") + value +
		text(kind) + strings.Repeat("\x00", 64)
}
