package models

// PEFT's adapter_config.json: how the numbers of a LoRA adapter are scaled, module by module.
//
// What must stay true: an unsupported field that changes the result is refused by its name. So is
// an unknown field, unless its value is empty.

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/models/safetensors"
)

// LoRAConfig is the name of that file.
const LoRAConfig = "adapter_config.json"

// MergeElsewhere is the advice for an adapter that cannot be added here.
const MergeElsewhere = "merge it with PEFT's merge_and_unload, then run ossrun import on the result"

// LoRA is the content of adapter_config.json.
type LoRA struct {
	Base string // the model that it was trained on: a repository or a folder, "" if unknown

	rank          int
	alpha         float64
	root          bool // rsLoRA divides by the root of the rank
	ranks, alphas []perModule
}

// perModule is a value for the modules that a pattern matches.
type perModule struct {
	modules *regexp.Regexp
	value   float64
}

// supported are the fields that are read here, or that describe the training only. The tensors tell
// which modules an adapter changes, not target_modules.
var supported = strings.Fields("peft_type base_model_name_or_path r lora_alpha use_rslora " +
	"rank_pattern alpha_pattern init_lora_weights target_modules target_parameters " +
	"exclude_modules modules_to_save bias layers_to_transform layers_pattern lora_dropout " +
	"inference_mode task_type revision auto_mapping peft_version megatron_config megatron_core " +
	"loftq_config eva_config corda_config lora_ga_config runtime_config qalora_group_size " +
	"ensure_weight_tying")

// emptyValues are those of fields that set nothing.
var emptyValues = strings.Fields(`null false 0 0.0 "" [] {}`)

// harmlessInits are the values of init_lora_weights that leave the base model unchanged.
var harmlessInits = strings.Fields(`null true false "gaussian" "eva" "orthogonal"`)

const (
	maxRank     = maxWidth
	maxAlpha    = 1e9
	maxPatterns = 1 << 12
)

// ParseLoRA reads the text of adapter_config.json.
func ParseLoRA(text []byte) (LoRA, error) {
	f, err := parseFields(LoRAConfig, text)
	if err != nil {
		return LoRA{}, err
	}
	switch {
	case !f.has("peft_type"):
		f.fail("peft_type", "is missing: PEFT writes it")
	case f.text("peft_type") != "LORA":
		f.fail("peft_type", "is %s: only LORA adapters are supported", f.raw("peft_type"))
	}
	l := LoRA{Base: f.text("base_model_name_or_path"), rank: f.integer("r", 1, maxRank),
		alpha:  f.number("lora_alpha", maxAlpha, 8), // PEFT's own default
		ranks:  f.patterns("rank_pattern", maxRank, true),
		alphas: f.patterns("alpha_pattern", maxAlpha, false)}
	if f.has("use_rslora") {
		var err error
		l.root, err = f.get("use_rslora").Bool()
		f.reject("use_rslora", err, "true or false", "")
	}
	if begin := f.raw("init_lora_weights"); f.has("init_lora_weights") &&
		!slices.Contains(harmlessInits, begin) {
		f.fail("init_lora_weights", "is %s, which changes the base model too: %s", begin,
			MergeElsewhere)
	}
	for _, name := range slices.Sorted(maps.Keys(f.object)) {
		if !slices.Contains(supported, name) && !slices.Contains(emptyValues, f.raw(name)) {
			f.fail(safetensors.Printable(name), "is %s, which is not supported: %s", f.raw(name),
				MergeElsewhere)
		}
	}
	return l, *f.err
}

// patterns reads an object: for each pattern of module names a number up to most.
func (f fields) patterns(field string, most float64, integer bool) (list []perModule) {
	if !f.has(field) {
		return nil
	}
	parts, err := f.get(field).Parts(maxPatterns)
	if f.reject(field, err, "an object of at most 4096 patterns", "") {
		return nil
	}
	for _, part := range parts.List {
		// as PEFT's get_pattern_key matches
		modules, err := regexp.Compile(`^(?:.*\.)?(?:` + part.Name + `)$`)
		value, wrong := jsondoc.Field{Raw: part.Value}.Number(
			math.SmallestNonzeroFloat64, most)
		switch {
		case err != nil:
			f.fail(field, "holds %s, which is not a pattern: %s", safetensors.Printable(part.Name),
				MergeElsewhere)
		case wrong != nil || integer && value != math.Trunc(value):
			f.fail(field, "holds a value for %s that is not %s", safetensors.Printable(part.Name),
				map[bool]string{true: "a whole number above 0", false: "a number above 0"}[integer])
		}
		list = append(list, perModule{modules, value})
	}
	return list
}

// valueFor returns the value of the first pattern that matches the module, or standard.
func valueFor(list []perModule, module string, standard float64) float64 {
	for _, p := range list {
		if p.modules.MatchString(module) {
			return p.value
		}
	}
	return standard
}

func (l LoRA) Rank(module string) int { return int(valueFor(l.ranks, module, float64(l.rank))) }

// Scale is the factor of a module's product.
func (l LoRA) Scale(module string) float64 {
	rank := valueFor(l.ranks, module, float64(l.rank))
	if l.root {
		rank = math.Sqrt(rank)
	}
	return valueFor(l.alphas, module, l.alpha) / rank
}
