//go:build unix

// Files that a flag names: a pipe or a device is refused at once.

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPipesAndDevicesDoNotHangAFlag(t *testing.T) {
	folder := t.TempDir()
	pipe, endless, file := filepath.Join(folder, "pipe"), filepath.Join(folder, "endless"),
		filepath.Join(folder, "file")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", endless); err != nil {
		t.Fatal(err)
	}
	write(t, file, "{}")
	for _, line := range []string{
		"serve --model demo --port 0 --config PATH",
		"serve --model demo --port 0 --mcp-config PATH",
		"chat --model demo --mcp-config PATH hello",
		"serve --model demo --port 0 --api-key-file PATH",
		"launch codex --api-key-file PATH",
		"serve --model demo --port 0 --ssl-certfile PATH --ssl-keyfile FILE",
		"serve --model demo --port 0 --ssl-certfile FILE --ssl-keyfile PATH",
		"chat --model demo --schema PATH hello",
		"batch --model demo PATH " + filepath.Join(folder, "out"),
		"eval --model demo --data PATH",
		"eval --model demo --data FILE --results PATH",
		"bench --compare PATH",
		"bench serve --compare PATH",
		"bench serve --endpoint http://127.0.0.1:1 --dataset-name sharegpt --dataset-path PATH",
		"harmony parse PATH",
		"chat --model demo --lora PATH hello",
	} {
		for _, path := range []string{pipe, endless} {
			code, _, said := runHere(t.Context(), strings.Fields(
				strings.NewReplacer("PATH", path, "FILE", file).Replace(line))...)
			if code == exitOK && !strings.HasPrefix(line, "harmony") {
				t.Errorf("%s: %s", line, said)
			}
		}
	}
}
