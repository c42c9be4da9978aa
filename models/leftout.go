package models

// Which bytes of the weights' files hold tensors that are left out, because something else takes their place (a copy of the dense weights in 8 bits): so
// that they are not read ahead. A tensor that anything else is made from is never among them.

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models/safetensors"
)

// stretch is a part of a file.
type stretch struct{ begin, end int64 }

// without gives, for each of the weights' files, what holds tensors that are left out, in the order of the file. Names are the Hugging Face layout's; a
// tensor of another layout is left out when all that is made from it is.
func (f Found) without(out func(tensor string) bool) ([][]stretch, error) {
	if f.GGUF != nil {
		return f.GGUF.without(out), nil
	}
	paths, err := f.files()
	if err != nil {
		return nil, err
	}
	spec, err := readSpec(f.folder())
	if err != nil {
		return nil, err
	}
	var list [][]stretch
	var original bool
	for _, path := range paths {
		header, err := safetensors.Inspect(path)
		if err != nil {
			return nil, err
		}
		list = append(list, nil)
		for _, t := range header.Tensors {
			original = original || strings.HasPrefix(t.Name, "block.")
		}
		leave := leftOut(spec, out, original)
		for _, t := range header.Tensors {
			if leave[t.Name] {
				list[len(list)-1] = append(list[len(list)-1], stretch{t.Begin, t.End})
			}
		}
	}
	return list, nil
}

// leftOut gives the names in a file of the tensors that nothing is made from but what is left out.
func leftOut(s Spec, out func(tensor string) bool, original bool) map[string]bool {
	leave := map[string]bool{}
	for _, t := range s.Tensors() {
		name := t.Name
		if original {
			name = originalNames.Replace(name)
		}
		if others, met := leave[name]; !met || others {
			leave[name] = out(t.Name)
		}
	}
	return leave
}

// without is Found's for GGUF files.
func (g *GGUF) without(out func(tensor string) bool) [][]stretch {
	leave := map[string]bool{}
	for _, w := range g.rewrites {
		for _, from := range w.from {
			if others, met := leave[from.tensor.Name]; !met || others {
				leave[from.tensor.Name] = out(w.to.Name)
			}
		}
	}
	list := make([][]stretch, len(g.set.Files))
	for name, t := range g.set.Tensors {
		if leave[name] {
			list[t.File] = append(list[t.File], stretch{t.Begin, t.End})
		}
	}
	for _, of := range list {
		slices.SortFunc(of, func(a, b stretch) int { return cmp.Compare(a.begin, b.begin) })
	}
	return list
}
