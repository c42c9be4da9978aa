// Settings of agents for a model, in cases that launch.txtar's server does not cover.

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/adrg/xdg"
)

// A length of 0 would be believed: an agent that is not told one asks or guesses. No agent writes
// outside our folder.
func TestAgentsHearNoLengthThatNobodyKnows(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Cleanup(xdg.Reload)
	silent := []string{"qwen", "cline", "aider", "gptme"} // they have no setting for it
	for _, a := range agents {
		for _, context := range []int{0, 31337} {
			folder := t.TempDir()
			t.Setenv("XDG_STATE_HOME", folder)
			xdg.Reload()
			arguments, environment, err := a.settings(agentPort{URL: "http://h", Key: "k", Model: "m",
				Context: context})
			all := strings.Join(append(arguments, environment...), "\n")
			_ = filepath.WalkDir(folder, func(path string, _ os.DirEntry, _ error) error {
				text, _ := os.ReadFile(path) // nothing of a folder
				all += string(text)
				return nil
			})
			if told := strings.Contains(all, "31337"); err != nil ||
				told != (context > 0 && !slices.Contains(silent, a.Name)) ||
				!strings.Contains(all, "http://h") || !strings.Contains(all, "m") {
				t.Errorf("%s with %d: %v %s", a.Name, context, err, all)
			}
		}
	}
	if list, err := os.ReadDir(os.Getenv("HOME")); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
}

// Each agent gets what fits: all its tools, fewer, or a sentence.
func TestAgentsFitTheContext(t *testing.T) {
	for _, a := range agents {
		for _, context := range []int{0, 2048, 8192, 32768} {
			for _, cpu := range []bool{false, true} {
				for _, full := range []bool{false, true} {
					var notices []string
					s := agentPort{Model: "m", Context: context}
					err := fit(&s, a, full, cpu, func(l string) { notices = append(notices, l) })
					all := context == 0 || context >= a.Prompt+workRoom
					few := a.Lean > 0 && !full && (context == 0 || context >= a.Lean+workRoom)
					if refused := !all && !few; refused != (err != nil) ||
						s.Lean != (few && (cpu || !all)) || s.Lean != (len(notices) == 1) {
						t.Errorf("%s in %d, cpu %v, full %v: %v %v %v", a.Name, context, cpu, full, s,
							notices, err)
					}
				}
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
		arguments, _, err := agents[0].settings(agentPort{Model: model})
		if again, _, err := agents[0].settings(agentPort{Model: model}); err != nil ||
			!slices.Equal(again, arguments) {
			t.Error(again, err)
		}
		const setting = "model_catalog_json="
		i := slices.IndexFunc(arguments, func(a string) bool {
			return strings.HasPrefix(a, setting)
		})
		path, _ := strconv.Unquote(arguments[max(i, 0)][len(setting):])
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
