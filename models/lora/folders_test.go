//go:build unix

package lora_test

// What stands where an adapter's folder belongs, pipes too.

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/modeltest"
)

// TestRefusedFolders: a path that holds no adapter is named for what it is, and is not waited for.
func TestRefusedFolders(t *testing.T) {
	good := modeltest.NewAdapter(modeltest.Tiny(), "q_proj.weight")
	make := func(change func(folder string) error) string {
		folder := filepath.Join(t.TempDir(), "it")
		if err := good.Write(folder); err != nil {
			t.Fatal(err)
		}
		if err := change(folder); err != nil {
			t.Fatal(err)
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
	if err := pipe(alone); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, folder, want string }{
		{"nothing", filepath.Join(t.TempDir(), "no"), "there is no folder "},
		{"a pipe", alone, "pipe is not a folder: give the one that holds adapter_config.json"},
		{"a file of it", filepath.Join(make(gone(models.LoRAConfig)),
			lora.WeightsName), "is not a folder"},
		{"a piped config", make(func(f string) error {
			return pipe(filepath.Join(f, models.LoRAConfig))
		}), "adapter_config.json is not a regular file"},
		{"piped weights", make(func(f string) error { return pipe(filepath.Join(f, lora.WeightsName)) }),
			"adapter_model.safetensors is not a regular file"},
		{"no config", make(gone(models.LoRAConfig)), "has no adapter_config.json"},
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
}
