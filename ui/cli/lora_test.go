// A server with adapters that are models of their own.

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// TestServeNamesAdapters: a base and two adapters answer by their names, one after the other and at
// once, each as it does alone, and all three stay loaded.
func TestServeNamesAdapters(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for i, ending := range []string{"lm_head.weight", "v_proj.weight"} {
		a, err := demoAdapter(ending)
		if err == nil {
			err = a.Write(filepath.Join(folder, fmt.Sprint(i)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	head, value := filepath.Join(folder, "0")+":9", filepath.Join(folder, "1")+":30"
	s := serveDemo(t, "--lora", "head="+head, "--lora", "value="+value)
	ask := func(s *served, model string) (status int, text string) {
		r, body := s.send("POST", "/v1/completions", fmt.Sprintf(`{"model":%q,"ignore_eos":true,`+
			`"prompt":"The answer is","temperature":0,"max_tokens":12}`, model))
		var said struct {
			Model   string
			Choices []struct{ Text string }
		}
		if json.Unmarshal([]byte(body), &said) != nil || len(said.Choices) == 0 {
			return r.StatusCode, ""
		}
		if said.Model != model {
			t.Errorf("%s answers for %s", said.Model, model)
		}
		return r.StatusCode, said.Choices[0].Text
	}
	answer := func(s *served, model string) string {
		status, text := ask(s, model)
		if status != http.StatusOK {
			t.Errorf("%s: status %d", model, status)
		}
		return text
	}
	names := []string{"demo", "head", "value"}
	first := map[string]string{}
	for _, name := range names {
		first[name] = answer(s, name)
	}
	if first["demo"] == first["head"] || first["demo"] == first["value"] ||
		first["head"] == first["value"] {
		t.Fatalf("two models answer alike: %q", first)
	}
	var all sync.WaitGroup
	for range 2 {
		for _, name := range names {
			all.Go(func() {
				if got := answer(s, name); got != first[name] {
					t.Errorf("%s answers %q beside others, %q before", name, got, first[name])
				}
			})
		}
	}
	all.Wait()
	if loaded := s.loadedModels(); len(loaded) != 3 {
		t.Errorf("loaded are %q", loaded)
	}
	if status, _ := ask(s, "tail"); status != http.StatusNotFound {
		t.Errorf("an unknown name gives %d", status)
	}
	alone := serveDemo(t, "--lora", head)
	if got := answer(alone, "demo+0"); got != first["head"] {
		t.Errorf("alone it answers %q, as head %q", got, first["head"])
	}
	if !slices.Contains(alone.loadedModels(), "demo+0") {
		t.Errorf("loaded are %q", alone.loadedModels())
	}
}
