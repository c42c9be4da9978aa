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
func (m *Models) adapt(found checkpoint.Found) (checkpoint.Found, error) {
	var plain, named []string
	for _, text := range m.options.Lora {
		if _, _, ok := lora.Named(text); ok {
			named = append(named, text)
		} else {
			plain = append(plain, text)
		}
	}
	found, err := found.With(plain)
	if err != nil {
		return found, err
	}
	m.tunes = nil
	for _, text := range named {
		name, source, _ := lora.Named(text)
		same := func(n string) bool { return strings.EqualFold(n, name) }
		_, known := models.Lookup(name)
		if known || same(found.Name) || slices.ContainsFunc(m.options.ServedNames, same) ||
			slices.ContainsFunc(m.tunes, func(f checkpoint.Found) bool { return same(f.Name) }) {
			return found, fmt.Errorf("--lora %s: another model is called %s; choose another name",
				text, name)
		}
		tune, err := found.With([]string{source})
		if err != nil {
			return found, err
		}
		tune.Name = name
		m.tunes = append(m.tunes, tune)
	}
	return found, nil
}

// choose makes source the first model, with its adapters in one engine if the device can.
func (m *Models) choose(found checkpoint.Found) {
	m.together = m.spare != nil && m.spare.Caps().Tunes && len(m.tunes) > 0
	if m.together {
		found.Tunes = m.tunes
	} else {
		for _, tune := range m.tunes {
			m.found[keyOf(tune)] = tune
		}
		m.loaded.most = mostLoaded + len(m.tunes)
	}
	m.first = found
	m.found[keyOf(found)] = found
}

// keyOf identifies a model: its path and its adapters.
func keyOf(f checkpoint.Found) string {
	key := f.Path
	if f.Demo {
		key = models.Demo
	}
	for _, adapter := range f.Lora {
		key += "+" + adapter.String()
	}
	return key
}

// locate returns the engine's key and the adapter's index in it (0: base).
func (m *Models) place(f checkpoint.Found) (key string, tune int) {
	key = keyOf(f)
	for i, t := range m.first.Tunes {
		if keyOf(t) == key {
			return keyOf(m.first), i + 1
		}
	}
	return key, 0
}

// adapterModel returns one of the models of an engine; nil if m is nil.
func (m *Model) of(tune int) *Model {
	if m == nil || tune == 0 {
		return m
	}
	return m.tunes[tune-1]
}

// addAdapters makes a model for each adapter. The first model's plan has their memory.
func (m *Model) addTunes(found checkpoint.Found) {
	for i, tune := range found.Tunes {
		m.tunes = append(m.tunes, &Model{Model: m.Model.Tune(i+1, tune.Name), ckpt: m.ckpt.Tunes[i],
			backend: m.backend, dense: m.dense})
	}
}

// pagesOf names the pages of each adapter: the base's name plus the adapter IDs.
func pagesOf(base string, ckpt *checkpoint.Checkpoint) (names []string) {
	for _, tune := range ckpt.Tunes {
		names = append(names, base+" "+tune.AdapterIDs)
	}
	return names
}

// copySource is a model whose dense weights are copied in 8 bits.
type copied struct {
	checkpoint.Found
	ckpt *checkpoint.Checkpoint
}

// copySources returns a model, and its adapters that change weights in the copy.
func copiedOf(found checkpoint.Found, ckpt *checkpoint.Checkpoint) []copied {
	list := []copied{{found, ckpt}}
	for i, names := range ckpt.Changed() {
		if slices.ContainsFunc(names, q8.Replaces) {
			list = append(list, copied{found.Tunes[i], ckpt.Tunes[i]})
		}
	}
	return list
}

// hasCopies reports whether all copies are in the folder.
func readyCopies(list []copied, folder string) bool {
	return !slices.ContainsFunc(list,
		func(c copied) bool { return q8.Ready(c.Found, folder) == "" })
}
