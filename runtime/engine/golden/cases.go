package golden

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Reading a golden folder.

// Case is one prompt and the reference's results.
type Case struct {
	Name      string
	Tokens    []int32
	Positions []int32     // of the prompt, ascending
	Logits    [][]float32 // [positions][vocab]: after reading Tokens[0..position]
	Greedy    []int32     // the tokens after the prompt, always with the largest logit
	Gap       []float32   // at each of those: how far the second largest logit was
}

// Read loads the cases of dir/golden for a vocabulary of vocab tokens.
func Read(dir string, vocab int) ([]Case, error) {
	text, err := os.ReadFile(filepath.Join(dir, "golden", "cases.json"))
	if err != nil {
		return nil, err
	}
	var listed struct {
		Cases []struct{ Name string } `json:"cases"`
	}
	if err := json.Unmarshal(text, &listed); err != nil {
		return nil, fmt.Errorf("cases.json: %w", err)
	}
	if len(listed.Cases) == 0 {
		return nil, errors.New("cases.json lists no cases")
	}
	arrays, err := OpenArrays(filepath.Join(dir, "golden", "logits.safetensors"))
	if err != nil {
		return nil, err
	}
	defer arrays.Close()
	var cases []Case
	for _, l := range listed.Cases {
		c, err := arrays.readCase(l.Name, vocab)
		if err != nil {
			return nil, fmt.Errorf("logits.safetensors: case %s: %w", l.Name, err)
		}
		cases = append(cases, c)
	}
	return cases, nil
}

func (a *Arrays) readCase(name string, vocab int) (Case, error) {
	c := Case{Name: name}
	var errs [5]error
	var logits []float32
	c.Tokens, errs[0] = a.Int32(name + ".tokens")
	c.Positions, errs[1] = a.Int32(name + ".positions")
	logits, errs[2] = a.Float32(name + ".logits")
	c.Greedy, errs[3] = a.Int32(name + ".greedy")
	c.Gap, errs[4] = a.Float32(name + ".greedy_gap")
	if err := errors.Join(errs[:]...); err != nil {
		return c, err
	}
	if len(logits) != len(c.Positions)*vocab || len(c.Gap) != len(c.Greedy) || len(c.Tokens) == 0 {
		return c, fmt.Errorf("%d positions, %d logits of %d tokens, %d greedy tokens and %d gaps "+
			"do not go together", len(c.Positions), len(logits), vocab, len(c.Greedy), len(c.Gap))
	}
	for i, p := range c.Positions {
		if p < 0 || int(p) >= len(c.Tokens) || i > 0 && p <= c.Positions[i-1] {
			return c, fmt.Errorf("position %d of a prompt of %d", p, len(c.Tokens))
		}
		c.Logits = append(c.Logits, logits[i*vocab:(i+1)*vocab])
	}
	return c, nil
}

// Arrays are the named arrays of one safetensors file.
type Arrays struct{ file *safetensors.File }

func OpenArrays(path string) (*Arrays, error) {
	f, err := safetensors.Open(path)
	return &Arrays{f}, err
}

// Close unmaps the file; the results of Int32 and Float32 stay valid.
func (a *Arrays) Close() error { return a.file.Close() }

// Bytes is the raw array of a type.
func (a *Arrays) Bytes(name string, t safetensors.DType) ([]byte, error) {
	i := slices.IndexFunc(a.file.Header.Tensors,
		func(t safetensors.Info) bool { return t.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s is missing", name)
	}
	tensor := a.file.Tensor(i)
	if tensor.DType != t {
		return nil, fmt.Errorf("%s is %s, not %s", name, tensor.DType, t)
	}
	return tensor.Data, nil
}

func (a *Arrays) Int32(name string) ([]int32, error) {
	data, err := a.Bytes(name, safetensors.I32)
	return slices.Clone(engine.Numbers[int32](data)), err
}

func (a *Arrays) Float32(name string) ([]float32, error) {
	data, err := a.Bytes(name, safetensors.F32)
	return slices.Clone(engine.Numbers[float32](data)), err
}
