// Package lora reads LoRA adapters in PEFT's folders and adds them to a model's weights.
//
// What must stay true: an adapter is added as PEFT would add it, or refused in one sentence; every
// tensor of its file is used; all added numbers are finite.
package lora

// Opening an adapter: its config, the header of its one file, then every tensor against the model's
// shape. All numbers are read once, so that non-finite ones are refused before anything is computed
// with them.

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/safetensors"
)

// WeightsName is the file with an adapter's tensors.
const WeightsName = "adapter_model.safetensors"

// Adapter is an open adapter that fits a model. Its tensors are views of the mapped file.
type Adapter struct {
	Ref
	ID string // identifies its content and its scale

	file    *safetensors.File
	changes map[string]*change // by the model's tensor; for experts, the matrix without _blocks
	experts map[string]*change // by their names in the file; nil if experts must not change
}

// change is an adapter's change of one tensor: a scaled product to add, or replacement values.
type change struct {
	a, b    safetensors.Tensor // [rank, in], [out, rank]
	scale   float64
	saved   safetensors.Tensor // replacement from training; without Data: none
	experts map[int]*change    // of an experts' matrix whose experts are modules; else nil
}

// Open opens an adapter for a model of shape spec, whose experts it must not change.
func (r Ref) Open(spec models.Spec) (*Adapter, error) { return r.open(spec, nil) }

// OpenAll opens an adapter that may change the experts too.
func (r Ref) OpenAll(spec models.Spec) (*Adapter, error) {
	return r.open(spec, map[string]*change{})
}

func (r Ref) open(spec models.Spec, experts map[string]*change) (_ *Adapter, err error) {
	if stat, err := os.Stat(r.Path); err != nil || !stat.IsDir() {
		return nil, notAFolder(r.Path, err)
	}
	a := &Adapter{Ref: r, changes: map[string]*change{}, experts: experts}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("adapter %s: %w", r.Name, err), a.Close())
		}
	}()
	text, err := models.ReadFile(filepath.Join(r.Path, models.LoRAConfig))
	if errors.Is(err, fs.ErrNotExist) {
		if exists(filepath.Join(r.Path, "config.json")) {
			return nil, notAnAdapter(r.Path)
		}
		return nil, fmt.Errorf("%s has no %s. Give the folder that PEFT saved", r.Path,
			models.LoRAConfig)
	}
	if err != nil {
		return nil, err
	}
	config, err := models.ParseLoRA(text)
	if err == nil {
		err = otherBase(config.Base, spec)
	}
	if err != nil {
		return nil, err
	}
	a.file, err = safetensors.Open(filepath.Join(r.Path, WeightsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no %s: save the adapter with PEFT's save_pretrained, as "+
			"safetensors", r.Path, WeightsName)
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%v %d %s\n", r.Scale, len(text), text)
	for i := range a.file.Header.Tensors {
		t := a.file.Tensor(i)
		if err := a.place(t); err != nil {
			return nil, err
		}
		if err := readNumbers(t, sum); err != nil {
			return nil, err
		}
	}
	a.ID = hex.EncodeToString(sum.Sum(nil))
	return a, a.check(config, spec)
}

func (a *Adapter) Close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

// notAFolder describes a path that is not an adapter's folder.
func notAFolder(path string, err error) error {
	_, ok := models.Lookup(path)
	switch name := filepath.Base(path); {
	case ok || models.IsForeignName(path):
		return notAnAdapter(path)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %s", path)
	case err != nil:
		return err
	case strings.HasSuffix(name, ".gguf"):
		if _, err := gguf.Open(path); err != nil {
			return err // also for an adapter in GGUF
		}
		return notAnAdapter(path)
	}
	return fmt.Errorf("%s is not a folder. Give the one that holds %s and %s", path,
		models.LoRAConfig, WeightsName)
}

func notAnAdapter(model string) error {
	return fmt.Errorf("%s is a model, not an adapter: choose it with --model %[1]s", model)
}

// otherBase refuses an adapter whose base is another model of the catalogue: gpt-oss-20b and
// gpt-oss-120b have matrices of the same shapes.
func otherBase(base string, spec models.Spec) error {
	shaped := func(name string) bool {
		return slices.ContainsFunc(models.Catalogue(), func(e models.Entry) bool {
			return e.HF != "" && strings.Contains(name, e.Spec.Name) && e.Spec.SameShape(spec)
		})
	}
	inCatalogue := slices.ContainsFunc(models.Catalogue(),
		func(e models.Entry) bool { return e.HF != "" && e.Spec.SameShape(spec) })
	name := strings.ToLower(filepath.Base(filepath.ToSlash(base)))
	for _, e := range models.Catalogue() {
		if e.HF != "" && strings.Contains(name, e.Spec.Name) && inCatalogue && !shaped(name) {
			return fmt.Errorf("it was trained on %s: choose that model with --model %s",
				safetensors.Printable(base), e.ID)
		}
	}
	return nil
}

func (a *Adapter) place(t safetensors.Tensor) error {
	printable := safetensors.Printable(t.Name)
	name, ok := strings.CutPrefix(t.Name, "base_model.model.")
	switch {
	case !ok:
		return fmt.Errorf("%s holds tensor %s, which PEFT would call base_model.model. and so on",
			WeightsName, printable)
	case strings.Contains(name, ".mlp.experts.") && a.experts == nil:
		return fmt.Errorf("it changes the experts (tensor %s), whose weights are MXFP4: run "+
			"ossrun import MODEL --lora %s", printable, a.Path)
	case strings.Contains(name, ".lora_embedding_"), strings.Contains(name, ".lora_magnitude_"):
		return fmt.Errorf("%s holds tensor %s, which is not supported: %s", WeightsName, printable,
			models.MergeElsewhere)
	}
	if _, ok := gguf.Kinds[t.DType]; !ok {
		return fmt.Errorf("%s: tensor %s is %s, not BF16, F16 or F32", WeightsName, printable,
			t.DType)
	}
	// the wrappers of PEFT, and the Linear that unsloth puts into the router
	name = strings.NewReplacer(".base_layer.", ".", ".modules_to_save.", ".", ".default.", ".",
		".mlp.router.linear.", ".mlp.router.").Replace(name)
	changes := a.changes
	if module, nested, ok := strings.Cut(t.Name, ".mlp.experts."); ok {
		// PEFT wraps a module once per parameter, without the parameter's name
		depth := strings.Count(nested, "base_layer.")
		changes, name = a.experts, fmt.Sprintf("%s.mlp.experts %d.%s",
			strings.TrimPrefix(module, "base_model.model."), depth,
			strings.NewReplacer("base_layer.", "", ".default.", ".").Replace(nested))
	}
	changeOf := func(tensor string) *change {
		if changes[tensor] == nil {
			changes[tensor] = &change{}
		}
		return changes[tensor]
	}
	where := (*safetensors.Tensor)(nil)
	if module, ok := strings.CutSuffix(name, ".lora_A.weight"); ok {
		where = &changeOf(module + ".weight").a
	} else if module, ok := strings.CutSuffix(name, ".lora_B.weight"); ok {
		where = &changeOf(module + ".weight").b
	} else {
		where = &changeOf(name).saved
	}
	if where.Data != nil {
		return fmt.Errorf("%s holds tensor %s under two names", WeightsName, printable)
	}
	*where = t
	return nil
}

func (a *Adapter) check(config models.LoRA, spec models.Spec) error {
	if err := a.placeExperts(config, spec); err != nil {
		return err
	}
	rest := maps.Clone(a.changes)
	for _, to := range spec.Tensors() {
		c := rest[to.Name]
		if matrix, ok := strings.CutSuffix(to.Name, "_blocks"); ok {
			delete(rest, matrix) // placeExperts has checked it
		}
		if c == nil || to.DType != models.BF16 {
			continue
		}
		delete(rest, to.Name)
		if c.saved.Data != nil && !slices.Equal(c.saved.Shape, to.Shape) {
			return misfit(c.saved, to.Shape, config, spec)
		}
		if c.a.Data == nil && c.b.Data == nil {
			continue
		}
		module := strings.TrimSuffix(to.Name, ".weight")
		if c.a.Data == nil || c.b.Data == nil || len(to.Shape) != 2 {
			return fmt.Errorf("%s does not hold a pair of lora_A and lora_B for %s", WeightsName,
				module)
		}
		rank := config.Rank(module)
		if in := []int{rank, to.Shape[1]}; !slices.Equal(c.a.Shape, in) {
			return misfit(c.a, in, config, spec)
		}
		if out := []int{to.Shape[0], rank}; !slices.Equal(c.b.Shape, out) {
			return misfit(c.b, out, config, spec)
		}
		c.scale = config.Scale(module)
	}
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		return fmt.Errorf("%s changes %s, which %s does not have%s", WeightsName,
			safetensors.Printable(name), spec.Name, trainedOn(config))
	}
	if len(a.changes) == 0 {
		return fmt.Errorf("%s holds no tensor", WeightsName)
	}
	return nil
}

func misfit(t safetensors.Tensor, want []int, config models.LoRA, spec models.Spec) error {
	return fmt.Errorf("%s: tensor %s has shape %v, %s needs %v%s", WeightsName,
		safetensors.Printable(t.Name), t.Shape, spec.Name, want, trainedOn(config))
}

func trainedOn(config models.LoRA) string {
	if config.Base == "" {
		return ""
	}
	return fmt.Sprintf("; it was trained on %s%s", safetensors.Printable(config.Base),
		models.OtherBase(config.Base))
}

// readNumbers hashes a tensor, and refuses non-finite numbers.
func readNumbers(t safetensors.Tensor, sum hash.Hash) error {
	const chunk = 1 << 14
	size := t.DType.Bits() / 8
	fmt.Fprintf(sum, "%q %s %v\n", t.Name, t.DType, t.Shape)
	sum.Write(t.Data)
	values := make([]float32, chunk)
	for data := range slices.Chunk(t.Data, chunk*size) {
		gguf.Floats(values, data, gguf.Kinds[t.DType])
		for _, v := range values[:len(data)/size] {
			if v-v != 0 {
				return fmt.Errorf("%s: tensor %s holds %v: only finite numbers can be added",
					WeightsName, safetensors.Printable(t.Name), v)
			}
		}
	}
	return nil
}
