// Settings of agents for a model, in cases that launch.txtar's server does not cover.

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/adrg/xdg"
)

// A length of 0 would be believed: an agent that is not told one asks or guesses.
func TestAgentsHearNoLengthThatNobodyKnows(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	xdg.Reload()
	t.Cleanup(xdg.Reload)
	length := map[string]string{"codex": "model_context_window=", "opencode": `"limit"`,
		"claude": "CLAUDE_CODE_MAX_CONTEXT_TOKENS="}
	for _, a := range agents {
		for _, context := range []int{0, 4096} {
			arguments, environment, err := a.settings(agentPort{"http://h", "k", "m", context})
			all := strings.Join(append(arguments, environment...), "\n")
			if told := strings.Contains(all, length[a.name]); err != nil || told != (context > 0) {
				t.Errorf("%s with %d: %v %s", a.name, context, err, all)
			}
		}
	}
}

// A model's name may hold anything a path has another use for.
func TestCodexCatalogIsOneFileAModel(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_STATE_HOME", folder)
	xdg.Reload()
	t.Cleanup(xdg.Reload)
	for _, model := range []string{"openai/gpt-oss-20b", "../../m", "gpt-oss:20b"} {
		path, err := codexCatalog(model)
		if again, err := codexCatalog(model); err != nil || again != path {
			t.Error(again, err)
		}
		if err != nil || filepath.Dir(path) != filepath.Join(folder, "ossrun") ||
			strings.Contains(filepath.Base(path), ":") {
			t.Fatal(path, err)
		}
		var catalog struct {
			Models []struct {
				Slug  string `json:"slug"`
				Patch string `json:"apply_patch_tool_type"`
			} `json:"models"`
		}
		text, err := os.ReadFile(path)
		if err != nil || json.Unmarshal(text, &catalog) != nil || len(catalog.Models) != 1 ||
			catalog.Models[0].Slug != model || catalog.Models[0].Patch != "freeform" {
			t.Errorf("%v %s", err, text)
		}
	}
	if list, err := os.ReadDir(filepath.Join(folder, "ossrun")); err != nil || len(list) != 3 {
		t.Error(list, err)
	}
}
