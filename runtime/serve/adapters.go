// Models that share all except a few weights: the first one, and its adapters. One engine runs them
// all if the device can, and a step has rows of each. On a GPU each is loaded separately.
//
// What must stay true: a name always answers with its own model, whatever runs in the same step.

package serve

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/q8"
)

// adapt adds the adapters of the options to a model. A named one becomes a model of its own, with
// the unnamed ones too.
func (m *Models) adapt(base checkpoint.Model) (checkpoint.Model, error) {
	isNamed := func(text string) bool { _, _, ok := lora.Named(text); return ok }
	plain := slices.DeleteFunc(slices.Clone(m.options.Adapters), isNamed)
	base, err := base.With("", plain...)
	if err != nil {
		return base, err
	}
	m.adapters = nil
	for _, text := range m.options.Adapters {
		name, folder, ok := lora.Named(text)
		if !ok {
			continue
		}
		same := func(n string) bool { return strings.EqualFold(n, name) }
		_, isCatalogue := models.Lookup(name)
		if isCatalogue || same(base.Name) || slices.ContainsFunc(m.options.ServedNames, same) ||
			slices.ContainsFunc(m.adapters, func(f checkpoint.Model) bool { return same(f.Name) }) {
			return base, fmt.Errorf("--lora %s: another model is called %s; choose another name",
				text, name)
		}
		adapter, err := base.With(name, folder)
		if err != nil {
			return base, err
		}
		m.adapters = append(m.adapters, adapter)
	}
	return base, nil
}

// openWeights opens a model, and the adapters that share its engine.
func (m *Models) openWeights(source checkpoint.Model) (*checkpoint.Checkpoint, error) {
	ckpt, err := source.Open()
	if err != nil || !m.oneEngine || keyOf(source) != keyOf(m.first) {
		return ckpt, err
	}
	for _, adapter := range m.adapters {
		weights, err := adapter.Open()
		if err != nil {
			return nil, errors.Join(err, ckpt.Close())
		}
		ckpt.AddAdapter(adapter.Name, weights)
	}
	return ckpt, nil
}

// keyOf identifies a model: its path and its adapters.
func keyOf(f checkpoint.Model) string {
	key := f.Path
	if f.Demo {
		key = models.Demo
	}
	for _, adapter := range f.Refs {
		key += "+" + adapter.String()
	}
	return key
}

// locate returns the engine's key and the adapter's index in it (0: base).
func (m *Models) locate(f checkpoint.Model) (key string, adapter int) {
	key = keyOf(f)
	same := func(a checkpoint.Model) bool { return keyOf(a) == key }
	if i := slices.IndexFunc(m.adapters, same); m.oneEngine && i >= 0 {
		return keyOf(m.first), i + 1
	}
	return key, 0
}

// adapterModel returns one of the models of an engine; nil if m is nil. The plan of m has the
// memory of all.
func (m *Model) adapterModel(adapter int) *Model {
	if m == nil || adapter == 0 {
		return m
	}
	return &Model{Model: m.Model.Adapter(adapter, m.ckpt.Adapters[adapter-1].Name),
		ckpt: m.ckpt.ForAdapter(adapter), backend: m.backend, dense: m.dense}
}

// copySource is a model whose dense weights are copied in 8 bits.
type copySource struct {
	checkpoint.Model
	ckpt *checkpoint.Checkpoint
}

func (m *Models) copySources(source checkpoint.Model, ckpt *checkpoint.Checkpoint) []copySource {
	list := []copySource{{source, ckpt}}
	for i, adapter := range ckpt.Adapters {
		if slices.ContainsFunc(adapter.Changed, q8.Replaces) {
			list = append(list, copySource{m.adapters[i], ckpt.ForAdapter(i + 1)})
		}
	}
	return list
}

func hasCopies(list []copySource, folder string) bool {
	return !slices.ContainsFunc(list,
		func(c copySource) bool { return q8.Ready(c.Model, folder) == "" })
}
