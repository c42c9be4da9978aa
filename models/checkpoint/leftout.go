package checkpoint

// Which bytes of the weights' files hold tensors that are left out, because something else takes
// their place (a copy of the dense weights in 8 bits): so that they are not read ahead. A tensor
// that anything else is made from is never among them.

import (
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/safetensors"
)

// without gives, for each of the weights' files, the parts that hold left-out tensors, in the order
// of the file. Names are those of the Hugging Face layout; a tensor of another layout is left out
// if all tensors made from it are.
func (f Found) without(out func(tensor string) bool) ([][]mapping.Range, error) {
	if f.GGUF != nil {
		return f.GGUF.Without(out), nil
	}
	paths, err := f.files()
	if err != nil {
		return nil, err
	}
	spec, err := models.ReadSpec(f.folder())
	if err != nil {
		return nil, err
	}
	var list [][]mapping.Range
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
				list[len(list)-1] = append(list[len(list)-1],
					mapping.Range{Begin: t.Begin, End: t.End})
			}
		}
	}
	return list, nil
}

// leftOut gives the names, as a file has them, of the tensors from which only left-out tensors are
// made.
func leftOut(s models.Spec, out func(tensor string) bool, original bool) map[string]bool {
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
