package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/runtime/remote/vllm"
)

// Every flag of vLLM's parser goes through a plan as it is typed, or is one of ours too; the model
// after it stays the model.
func TestEveryFlagOfVLLMGoesThrough(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../runtime/remote/vllm/flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := flagNames(vllmCommand(Terminal{}).Subcommands[1])
	passed := 0
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		words := strings.Fields(line)
		for _, flag := range words {
			name, _ := known.canonical(strings.TrimLeft(flag, "-"))
			if name != "" || flag[0] != '-' {
				continue
			}
			typed := []string{flag}
			switch words[len(words)-1] {
			case "=":
				typed = append(typed, "-7")
			case "*":
				typed = append(typed, "7", "8")
			}
			args := append(strings.Fields("vllm plan --hardware H200 --print shell"), typed...)
			code, out, errs := runHere(t.Context(), append(args, "120b")...)
			if want := " " + strings.Join(typed, " "); code != 0 ||
				!strings.Contains(out+" ", want) || !strings.Contains(out, "gpt-oss-120b") {
				t.Errorf("%s: %d %s%s", typed, code, out, errs)
			}
			passed++
		}
	}
	if passed < 150 {
		t.Errorf("%d flags are passed on", passed)
	}
}

func TestWhatGoesThrough(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"--made-up-flag 3":                           "--made-up-flag 3",
		"--made-up-switch --seed 4":                  "--made-up-switch",
		"--quantization-config.moe.activation mxfp8": "--quantization-config.moe.activation mxfp8",
		"-O3":                           "-O3",
		"--performance_mode=throughput": "--performance_mode=throughput",
		"-- --attention-config.backend X --moe-backend":           "--attention-config.backend X --moe-backend",
		"--docker-arg=--network=host --docker-arg -v=/data:/data": "docker run --gpus all",
	} {
		for _, verb := range []string{"vllm plan 120b", "serve --engine vllm --dry-run 120b"} {
			args := strings.Fields(verb + " --hardware H200 --launch docker " + typed)
			code, out, errs := runHere(t.Context(), args...)
			_, command, _ := strings.Cut(out, "The command\n")
			if code != 0 || !strings.Contains(command, want) ||
				strings.Contains(typed, "docker-arg") && !strings.Contains(command,
					"--network=host -v=/data:/data vllm/vllm-openai") {
				t.Errorf("%s %s: %d %s%s", verb, typed, code, command, errs)
			}
		}
	}
	for typed, want := range map[string]string{
		"serve demo --moe-backend triton":                               `--moe-backend is a flag of vLLM`,
		"serve demo --made-up 3":                                        `unknown flag "--made-up"`,
		"vllm serve 120b --upstream http://127.0.0.1:9 --moe-backend x": "no plan for --moe-backend x",
		"vllm plan 120b --hardware H200 --launch local --docker-arg -v": "is for --launch docker",
	} {
		if code, _, errs := runHere(t.Context(), strings.Fields(typed)...); code != exitUsage ||
			!strings.Contains(strings.Join(strings.Fields(errs), " "), want) {
			t.Errorf("%s: %d %s", typed, code, errs)
		}
	}
	for config, refused := range map[string]string{`"model_type":"gpt_oss"`: "",
		`"model_type":"gpt_oss","quantization_config":{"quant_method":"quark"}`: "",
		`"model_type":"qwen3"`: "qwen3", `"a":`: "config.json"} {
		folder := t.TempDir()
		write(t, filepath.Join(folder, "config.json"), "{"+config+"}")
		code, out, errs := runHere(t.Context(), "vllm", "plan", folder, "--hardware", "H200")
		if mount := "-v " + folder + ":" + folder + ":ro"; refused == "" &&
			!strings.Contains(out, mount) || !strings.Contains(errs, refused) ||
			(code == 0) != (refused == "") {
			t.Errorf("%s: %d %s%s", config, code, out, errs)
		}
	}
	// a folder of this machine is on no other
	for _, nodes := range []string{"", " --nodes 2"} {
		_, out, errs := runHere(t.Context(), strings.Fields("vllm plan 20b --hardware H200 "+
			"--launch local --print shell"+nodes)...)
		if !strings.Contains(out, "vllm serve") || strings.Contains(out, xdg.CacheHome) {
			t.Errorf("%q: %s%s", nodes, out, errs)
		}
	}
	if v, ok := vllm.FlagValues("--tensor_parallel_size=3"); v != vllm.OneValue || !ok {
		t.Error(v, ok)
	}
}
