// What Codex needs to know about a foreign model: overrides of its config.toml for one run, and a
// catalogue of that one model in our state folder.
//
// Codex offers its edit tool only to models whose catalogue says so, yet orders all others to use
// it, in 4,000 tokens of instructions. What must stay true: the catalogue depends only on its name,
// so that two runs write the same and a printed command keeps working.

package cli

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/ossrun/ossrun/models/store"
)

const codexInstructions = "You are Codex, a coding agent in a terminal. You work in the user's " +
	"folder.\n" +
	"- Read files with exec_command before you change them.\n" +
	"- Change files with apply_patch only. Its input is the bare patch, from '*** Begin Patch' " +
	"to '*** End Patch', without JSON around it.\n" +
	"- Then run the smallest test or build that shows whether the change works.\n" +
	"- Follow AGENTS.md if there is one. Change nothing that the user did not ask for.\n" +
	"- Continue until the task is done. Then say in a few lines what you changed and saw."

// codexCatalog writes the catalogue and returns its path. Codex refuses an entry without any of the
// first eleven keys.
func codexCatalog(model string) (string, error) {
	var efforts []dict
	for _, effort := range [][2]string{{"low", "Quick answers"}, {"medium", "Balanced"},
		{"high", "Thorough"}} {
		efforts = append(efforts, dict{"effort": effort[0], "description": effort[1]})
	}
	entry := dict{
		"slug":                         model,
		"display_name":                 model,
		"base_instructions":            codexInstructions,
		"supported_reasoning_levels":   efforts,
		"shell_type":                   "unified_exec",
		"visibility":                   "list",
		"supported_in_api":             true,
		"priority":                     1,
		"support_verbosity":            false,
		"truncation_policy":            dict{"mode": "tokens", "limit": 10000},
		"experimental_supported_tools": []string{},

		"apply_patch_tool_type":           "freeform",
		"default_reasoning_level":         "medium",
		"input_modalities":                []string{"text"},
		"include_apps_usage_instructions": false,
	}
	text, err := json.MarshalIndent(dict{"models": []dict{entry}}, "", "  ")
	if err != nil {
		return "", err
	}
	path := stateFile("codex-" + url.QueryEscape(model) + ".json")
	return path, store.WriteFile(path, text, 0o600)
}

// codexSettings turn off features that cost a local model thousands of tokens and do not help it.
// The user's own -c follows them and wins.
func codexSettings(s agentPort) (arguments, environment []string, err error) {
	catalog, err := codexCatalog(s.Model)
	if err != nil {
		return nil, nil, fmt.Errorf("the model's description for Codex: %w", err)
	}
	provider := fmt.Sprintf("{name=\"ossrun\",base_url=%q,wire_api=\"responses\","+
		"env_key=\"OSSRUN_API_KEY\"}", s.URL+"/v1")
	settings := []string{"model_provider=\"ossrun\"", "model_providers.ossrun=" + provider,
		fmt.Sprintf("model=%q", s.Model), fmt.Sprintf("model_catalog_json=%q", catalog),
		"show_raw_agent_reasoning=true", "skills.include_instructions=false",
		"features.goals=false", "features.view_image=false"}
	if s.NoWeb {
		settings = append(settings, "web_search=\"disabled\"")
	}
	if s.Context > 0 {
		settings = append(settings, fmt.Sprintf("model_context_window=%d", s.Context))
	}
	for _, setting := range settings {
		arguments = append(arguments, "-c", setting)
	}
	return arguments, []string{"OSSRUN_API_KEY=" + s.Key}, nil
}
