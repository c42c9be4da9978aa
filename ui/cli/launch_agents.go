// The agents that ossrun launch starts, as a table: how each is installed, what its first request
// needs, and how it is pointed at a server.
//
// What must stay true: no file of the user's is written; a length that is unknown is not passed on,
// since an agent believes it.

package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/ossrun/ossrun/models/store"
)

type agent struct {
	name, program, install string
	prompt, lean           int // tokens of the first request; lean: with fewer tools, 0: it cannot
	// settings returns the program's arguments and variables for a server.
	settings func(s agentPort) (arguments, environment []string, err error)
}

type agentPort struct {
	URL     string // without /v1
	Key     string // never empty: agents ask the person otherwise
	Model   string
	Context int  // tokens; 0: unknown
	Lean    bool // offer fewer tools
	NoWeb   bool // the server cannot search
}

var agents = []agent{
	{"codex", "codex", "npm install -g @openai/codex", 3284, 0, codexSettings},
	{"claude", "claude", "npm install -g @anthropic-ai/claude-code", 10355, 3619, claudeSettings},
	{"opencode", "opencode", "npm install -g opencode-ai", 6380, 0, opencodeSettings},
	{"copilot", "copilot", "npm install -g @github/copilot", 11028, 0, copilotSettings},
	{"qwen", "qwen", "npm install -g @qwen-code/qwen-code", 16341, 0, qwenSettings},
	{"kimi", "kimi", "npm install -g @moonshot-ai/kimi-code", 17215, 0, kimiSettings},
	{"droid", "droid", "npm install -g droid", 8164, 0, droidSettings},
	{"pi", "pi", "npm install -g @earendil-works/pi-coding-agent", 1172, 0, piSettings},
	{"cline", "cline", "npm install -g cline", 3483, 0, clineSettings},
	{"continue", "cn", "npm install -g @continuedev/cli", 1817, 0, continueSettings},
	{"aider", "aider", "pipx install aider-chat", 2400, 0, aiderSettings},
	{"gptme", "gptme", "pipx install gptme", 8101, 0, gptmeSettings},
}

type dict = map[string]any

// agentFile writes a file of ours for an agent and returns its path. The next launch of the agent
// writes it again, for its server: a command that was printed before then uses that one.
func agentFile(content any, names ...string) (string, error) {
	text, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return "", err
	}
	path := stateFile(append([]string{"agents"}, names...)...)
	return path, store.WriteFile(path, text, 0o600)
}

// withContext adds the context's length under a name, if it is known.
func (s agentPort) withContext(environment []string, name string) []string {
	if s.Context > 0 {
		environment = append(environment, fmt.Sprint(name, "=", s.Context))
	}
	return environment
}

// claudeSettings set one model for all uses, sub-agents too. The agent assumes 1,000,000 tokens for
// an unknown model and would never compact. Its attribution header, a line before every prompt, and
// its other traffic are turned off.
func claudeSettings(s agentPort) (arguments, environment []string, err error) {
	environment = s.withContext([]string{"ANTHROPIC_BASE_URL=" + s.URL,
		"ANTHROPIC_AUTH_TOKEN=" + s.Key, "ANTHROPIC_API_KEY=",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_ATTRIBUTION_HEADER=0"},
		"CLAUDE_CODE_MAX_CONTEXT_TOKENS")
	for _, use := range []string{"ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL",
		"ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL",
		"ANTHROPIC_DEFAULT_FABLE_MODEL", "ANTHROPIC_SMALL_FAST_MODEL",
		"CLAUDE_CODE_SUBAGENT_MODEL"} {
		environment = append(environment, use+"="+s.Model)
	}
	switch {
	case s.Lean:
		arguments = []string{"--tools=Bash,Edit,Read,Write"}
	case s.NoWeb:
		arguments = []string{"--disallowedTools=WebSearch"}
	}
	return arguments, environment, nil
}

// opencodeSettings are a separate config, which it merges with the user's.
func opencodeSettings(s agentPort) (arguments, environment []string, err error) {
	model := dict{"name": s.Model, "reasoning": true, "tool_call": true}
	if s.Context > 0 {
		model["limit"] = map[string]int{"context": s.Context, "output": s.Context / 4}
	}
	config, err := json.Marshal(dict{
		"provider": dict{"ossrun": dict{
			"npm": "@ai-sdk/openai-compatible", "name": "ossrun",
			"options": dict{"baseURL": s.URL + "/v1", "apiKey": s.Key},
			"models":  dict{s.Model: model}}},
		"model": "ossrun/" + s.Model, "small_model": "ossrun/" + s.Model,
	})
	return nil, []string{"OPENCODE_CONFIG_CONTENT=" + string(config)}, err
}

func copilotSettings(s agentPort) (arguments, environment []string, err error) {
	return nil, s.withContext([]string{"COPILOT_PROVIDER_BASE_URL=" + s.URL + "/v1",
		"COPILOT_PROVIDER_API_KEY=" + s.Key, "COPILOT_PROVIDER_WIRE_API=responses",
		"COPILOT_MODEL=" + s.Model}, "COPILOT_PROVIDER_MAX_PROMPT_TOKENS"), nil
}

func qwenSettings(s agentPort) (arguments, environment []string, err error) {
	return []string{"--auth-type", "openai"}, []string{"OPENAI_API_KEY=" + s.Key,
		"OPENAI_BASE_URL=" + s.URL + "/v1", "OPENAI_MODEL=" + s.Model}, nil
}

func kimiSettings(s agentPort) (arguments, environment []string, err error) {
	return nil, s.withContext([]string{"KIMI_MODEL_PROVIDER_TYPE=openai",
		"KIMI_MODEL_BASE_URL=" + s.URL + "/v1", "KIMI_MODEL_API_KEY=" + s.Key,
		"KIMI_MODEL_NAME=" + s.Model}, "KIMI_MODEL_MAX_CONTEXT_SIZE"), nil
}

func droidSettings(s agentPort) (arguments, environment []string, err error) {
	model := dict{"model": s.Model, "displayName": s.Model, "baseUrl": s.URL + "/v1",
		"apiKey": s.Key, "provider": "generic-chat-completion-api"}
	if s.Context > 0 {
		model["maxContextLimit"] = s.Context
	}
	path, err := agentFile(dict{"customModels": []dict{model},
		"sessionDefaultSettings": dict{"model": "custom:" + s.Model + "-0"}}, "droid.json")
	return []string{"--settings", path}, nil, err
}

// piSettings are a folder of settings, where its sessions are too.
func piSettings(s agentPort) (arguments, environment []string, err error) {
	model := dict{"id": s.Model, "input": []string{"text"}, "reasoning": true}
	if s.Context > 0 {
		model["contextWindow"] = s.Context
	}
	path, err := agentFile(dict{"providers": dict{"ossrun": dict{"baseUrl": s.URL + "/v1",
		"api": "openai-responses", "apiKey": s.Key, "models": []dict{model}}}}, "pi", "models.json")
	return []string{"--provider", "ossrun", "--model", s.Model},
		[]string{"PI_CODING_AGENT_DIR=" + filepath.Dir(path)}, err
}

// clineSettings are a folder of settings, where its sessions are too.
func clineSettings(s agentPort) (arguments, environment []string, err error) {
	path, err := agentFile(dict{"version": 1, "lastUsedProvider": "openai-compatible",
		"providers": dict{"openai-compatible": dict{"tokenSource": "manual",
			"updatedAt": "2026-01-01T00:00:00Z",
			"settings": dict{"provider": "openai-compatible", "model": s.Model,
				"baseUrl": s.URL + "/v1", "apiKey": s.Key}}}},
		"cline", "settings", "providers.json")
	return nil, []string{"CLINE_DATA_DIR=" + filepath.Dir(filepath.Dir(path))}, err
}

// continueSettings are YAML, of which JSON is a part.
func continueSettings(s agentPort) (arguments, environment []string, err error) {
	model := dict{"name": s.Model, "provider": "openai", "model": s.Model,
		"apiBase": s.URL + "/v1", "apiKey": s.Key, "roles": []string{"chat"},
		"capabilities": []string{"tool_use"}}
	if s.Context > 0 {
		model["defaultCompletionOptions"] = dict{"contextLength": s.Context}
	}
	path, err := agentFile(dict{"name": "ossrun", "version": "1.0.0", "schema": "v1",
		"models": []dict{model}}, "continue.yaml")
	return []string{"--config", path}, nil, err
}

func aiderSettings(s agentPort) (arguments, environment []string, err error) {
	return []string{"--model", "openai/" + s.Model, "--no-show-model-warnings"},
		[]string{"OPENAI_API_BASE=" + s.URL + "/v1", "OPENAI_API_KEY=" + s.Key}, nil
}

func gptmeSettings(s agentPort) (arguments, environment []string, err error) {
	return []string{"-m", "local/" + s.Model}, []string{"OPENAI_BASE_URL=" + s.URL + "/v1",
		"OPENAI_API_KEY=" + s.Key}, nil
}
