// Models that share all except a few weights: the first one, and its adapters. One engine runs them
// all if the device can, and a step has rows of each. On a GPU each is loaded separately.
//
// What must stay true: a name always answers with its own model, whatever runs in the same step.

package serve

import (
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
	var plain, named []string
	for _, text := range m.options.Adapters {
		if _, _, ok := lora.Named(text); ok {
			named = append(named, text)
		} else {
			plain = append(plain, text)
		}
	}
	base, err := base.With(plain)
	if err != nil {
		return base, err
	}
	m.adapters = nil
	for _, text := range named {
		name, folder, _ := lora.Named(text)
		same := func(n string) bool { return strings.EqualFold(n, name) }
		_, isCatalogue := models.Lookup(name)
		if isCatalogue || same(base.Name) || slices.ContainsFunc(m.options.ServedNames, same) ||
			slices.ContainsFunc(m.adapters, func(f checkpoint.Model) bool { return same(f.Name) }) {
			return base, fmt.Errorf("--lora %s: another model is called %s; choose another name",
				text, name)
		}
		adapter, err := base.With([]string{folder})
		if err != nil {
			return base, err
		}
		adapter.Name = name
		m.adapters = append(m.adapters, adapter)
	}
	return base, nil
}

// choose makes source the first model, with its adapters in one engine if the device can.
func (m *Models) choose(source checkpoint.Model) {
	m.oneEngine = m.spare != nil && m.spare.Caps().Adapters && len(m.adapters) > 0
	if m.oneEngine {
		source.Adapted = m.adapters
	} else {
		for _, adapter := range m.adapters {
			m.sources[keyOf(adapter)] = adapter
		}
		m.loaded.maxLoaded = maxLoadedModels + len(m.adapters)
	}
	m.first = source
	m.sources[keyOf(source)] = source
}

// keyOf identifies a model: its path and its adapters.
func keyOf(f checkpoint.Model) string {
	key := f.Path
	if f.Demo {
		key = models.Demo
	}
	for _, adapter := range f.Adapters {
		key += "+" + adapter.String()
	}
	return key
}

// locate returns the engine's key and the adapter's index in it (0: base).
func (m *Models) locate(f checkpoint.Model) (key string, adapter int) {
	key = keyOf(f)
	for i, t := range m.first.Adapted {
		if keyOf(t) == key {
			return keyOf(m.first), i + 1
		}
	}
	return key, 0
}

// adapterModel returns one of the models of an engine; nil if m is nil.
func (m *Model) adapterModel(adapter int) *Model {
	if m == nil || adapter == 0 {
		return m
	}
	return m.adapters[adapter-1]
}

// addAdapters makes a model for each adapter. The first model's plan has their memory.
func (m *Model) addAdapters(source checkpoint.Model) {
	for i, adapter := range source.Adapted {
		m.adapters = append(m.adapters, &Model{Model: m.Model.Adapter(i+1, adapter.Name),
			ckpt: m.ckpt.Adapted[i], backend: m.backend, dense: m.dense})
	}
}

// pagesOf names the pages of each adapter: the base's name plus the adapter IDs.
func pagesOf(base string, ckpt *checkpoint.Checkpoint) (names []string) {
	for _, adapter := range ckpt.Adapted {
		names = append(names, base+" "+adapter.AdapterIDs)
	}
	return names
}

// copySource is a model whose dense weights are copied in 8 bits.
type copySource struct {
	checkpoint.Model
	ckpt *checkpoint.Checkpoint
}

func copySources(source checkpoint.Model, ckpt *checkpoint.Checkpoint) []copySource {
	list := []copySource{{source, ckpt}}
	for i, names := range ckpt.Changed() {
		if slices.ContainsFunc(names, q8.Replaces) {
			list = append(list, copySource{source.Adapted[i], ckpt.Adapted[i]})
		}
	}
	return list
}

func hasCopies(list []copySource, folder string) bool {
	return !slices.ContainsFunc(list,
		func(c copySource) bool { return q8.Ready(c.Model, folder) == "" })
}
