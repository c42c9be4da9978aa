// The agents that ossrun launch starts are rows of agents.yaml, which says what its words mean.
//
// What must stay true: no file of the user's is written; a length that is unknown is not passed on,
// since an agent believes it; the path of a file depends only on the agent, or for Codex on the
// model, so that a printed command keeps working.

package cli

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/ossrun/ossrun/models/store"
)

type agent struct {
	Name, Program, Install string
	Prompt, Lean           int // tokens of the first request; lean: with fewer tools, 0: it cannot
	Arguments, Environment []string
	LeanArguments          []string `yaml:"lean_arguments"`
	NoWebArguments         []string `yaml:"no_web_arguments"`
	Path                   string   // in our folder; "": none is written
	File                   any
}

type agentPort struct {
	URL     string // without /v1
	Key     string // never empty: agents ask the person otherwise
	Model   string
	Context int  // tokens; 0: unknown
	Lean    bool // offer fewer tools
	NoWeb   bool // the server cannot search
}

//go:embed agents.yaml
var agentsText []byte

var agents = func() (list []agent) {
	if err := yaml.UnmarshalWithOptions(agentsText, &list, yaml.Strict()); err != nil {
		panic("agents.yaml: " + err.Error()) // every test reads it
	}
	return list
}()

// fill replaces the words in braces, with pairs of further ones, in the strings of a value. It
// returns false for one that goes, with its whole list or object if nothing else is in it.
func (s agentPort) fill(value any, pairs ...string) (any, bool) {
	words := strings.NewReplacer(append(pairs, "{url}", s.URL, "{key}", s.Key, "{model}", s.Model,
		"{context}", strconv.Itoa(s.Context), "{context/4}", strconv.Itoa(s.Context/4))...)
	switch value := value.(type) {
	case string:
		text := words.Replace(value)
		if strings.HasPrefix(value, "{context") {
			return json.Number(text), s.Context > 0
		}
		return text, s.Context > 0 || !strings.Contains(value, "{context")
	case []any:
		list := []any{}
		for _, item := range value {
			if item, ok := s.fill(item, pairs...); ok {
				list = append(list, item)
			}
		}
		return list, len(list) > 0 || len(value) == 0
	case map[string]any:
		object := map[string]any{}
		for name, item := range value {
			if item, ok := s.fill(item, pairs...); ok {
				object[words.Replace(name)] = item
			}
		}
		return object, len(object) > 0
	}
	return value, true
}

// settings returns the program's arguments and variables for a server. The next launch of the agent
// writes its file again, for its server: a command that was printed before then uses that one.
func (a agent) settings(s agentPort) (arguments, environment []string, err error) {
	content, _ := s.fill(a.File)
	if a.Name == "codex" {
		return codexSettings(s, content)
	}
	config, err := json.Marshal(content)
	first, _, _ := strings.Cut(a.Path, "/")
	path := stateFile("agents", a.Path)
	if a.Path != "" && err == nil {
		err = writeAgentFile(path, content)
	}
	switch {
	case s.Lean:
		arguments = a.LeanArguments
	case s.NoWeb:
		arguments = a.NoWebArguments
	}
	texts := func(list []string) (filled []string) {
		for _, text := range list {
			if text, ok := s.fill(text, "{file}", path, "{folder}", stateFile("agents", first),
				"{config}", string(config)); ok {
				filled = append(filled, fmt.Sprint(text))
			}
		}
		return filled
	}
	return texts(append(a.Arguments[:len(a.Arguments):len(a.Arguments)], arguments...)),
		texts(a.Environment), err
}

func writeAgentFile(path string, content any) error {
	text, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return err
	}
	return store.WriteFile(path, text, 0o600)
}

// codexSettings are overrides of config.toml for one run, which turn off features that cost a local
// model thousands of tokens and do not help it, and a catalogue of that one model. Codex offers its
// edit tool only to models whose catalogue says so, yet orders all others to use it, in 4,000
// tokens of instructions. The user's own -c follows and wins.
func codexSettings(s agentPort, catalogue any) (arguments, environment []string, err error) {
	path := stateFile("codex-" + url.QueryEscape(s.Model) + ".json")
	if err := writeAgentFile(path, catalogue); err != nil {
		return nil, nil, fmt.Errorf("the model's description for Codex: %w", err)
	}
	provider := fmt.Sprintf("{name=\"ossrun\",base_url=%q,wire_api=\"responses\","+
		"env_key=\"OSSRUN_API_KEY\"}", s.URL+"/v1")
	settings := []string{"model_provider=\"ossrun\"", "model_providers.ossrun=" + provider,
		fmt.Sprintf("model=%q", s.Model), fmt.Sprintf("model_catalog_json=%q", path),
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
