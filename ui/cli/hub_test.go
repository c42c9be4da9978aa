// A hub for the scripts and for the first-run offer: the demo's weights under OpenAI's names.

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/hub/hubtest"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/models/pack"
)

// startHub starts a hub with a small openai/gpt-oss-20b, the same as someone/tune, in 16 bits as
// someone/wide, a gated someone/gated, and an adapter for it as someone/adapter.
func startHub() (*hubtest.Server, error) {
	repos, err := hubRepos()
	if err != nil {
		return nil, err
	}
	server := hubtest.New()
	for name, repo := range repos {
		server.Add(name, repo)
	}
	return server, nil
}

// hubRepos are made once.
var hubRepos = sync.OnceValues(func() (repos map[string]*hubtest.Repo, err error) {
	memory, err := pack.Unpack(bytes.NewReader(assets.DemoPack))
	if err != nil {
		return nil, err
	}
	weights := bytes.Clone(memory.Bytes)
	if err := memory.Free(); err != nil {
		return nil, err
	}
	files := map[string]*hubtest.File{
		"config.json":                hubtest.Text(string(assets.DemoConfig)),
		"generation_config.json":     hubtest.Text(string(assets.DemoGenerationConfig)),
		"model.safetensors":          hubtest.LFS(weights),
		"original/model.safetensors": hubtest.Generated(1000, 1),
	}
	repos = map[string]*hubtest.Repo{"openai/gpt-oss-20b": {Files: files},
		"someone/tune":  {Files: files, Refs: []string{"v1"}},
		"someone/gated": {Files: files, Gated: true, Token: "good"}}
	for name, config := range map[string]string{"llama": `{"model_type":"llama"}`, "bits": `{` +
		`"model_type":"gpt_oss","quantization_config":{"quant_method":"bitsandbytes"}}`} {
		repos["someone/"+name] = &hubtest.Repo{Files: map[string]*hubtest.File{
			"config.json": hubtest.Text(config), "model.safetensors": hubtest.Generated(1000, 1)}}
	}
	if repos["someone/wide"], err = wideDemo(); err != nil {
		return nil, err
	}
	adapter, err := demoAdapter("v_proj.weight", "lm_head.weight")
	if err != nil {
		return nil, err
	}
	adapter.Config["base_model_name_or_path"] = "openai/gpt-oss-20b"
	config, err := json.Marshal(adapter.Config)
	repos["someone/adapter"] = &hubtest.Repo{Files: map[string]*hubtest.File{
		"adapter_config.json":       hubtest.Text(string(config)),
		"adapter_model.safetensors": hubtest.LFS(modeltest.Encode(adapter.Tensors, nil)),
	}}
	return repos, err
})

// wideDemo is the demo as a merged export in 16 bits.
func wideDemo() (*hubtest.Repo, error) {
	demo, err := checkpoint.OpenDemo()
	if err != nil {
		return nil, err
	}
	var config map[string]any
	if err := json.Unmarshal(assets.DemoConfig, &config); err != nil {
		return nil, err
	}
	wide, err := modeltest.Merged(demo, config, 1)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(wide.Config)
	if err != nil {
		return nil, err
	}
	return &hubtest.Repo{Files: map[string]*hubtest.File{
		"config.json":            hubtest.Text(string(text)),
		"generation_config.json": hubtest.Text(string(assets.DemoGenerationConfig)),
		"model.safetensors":      hubtest.LFS(modeltest.Encode(wide.Shards[0], nil)),
	}}, demo.Close()
}

// demoAdapter makes an adapter for the demo.
func demoAdapter(endings ...string) (*modeltest.Adapter, error) {
	demo, err := checkpoint.OpenDemo()
	if err != nil {
		return nil, err
	}
	return modeltest.NewAdapter(demo.Spec, endings...), demo.Close()
}

// loraCommand FOLDER ENDING... writes an adapter for the demo that changes the tensors whose names
// end so.
func loraCommand(ts *testscript.TestScript, neg bool, args []string) {
	adapter, err := demoAdapter(args[1:]...)
	ts.Check(err)
	ts.Check(adapter.Write(ts.MkAbs(args[0])))
}

// hubCommand starts a hub that the script's ossrun uses.
func hubCommand(ts *testscript.TestScript, neg bool, args []string) {
	server, err := startHub()
	ts.Check(err)
	ts.Defer(server.Close)
	ts.Setenv("HF_ENDPOINT", server.Hub.URL)
}

// aHub is one that ends with the test, and what leads the program to it.
func aHub(t *testing.T) (server *hubtest.Server, variables []string) {
	t.Helper()
	server, err := startHub()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server, []string{"HF_ENDPOINT=" + server.Hub.URL, "HF_TOKEN="}
}

func TestFirstRunOffer(t *testing.T) {
	t.Parallel()
	server, variables := aHub(t)
	term, _ := runInTerminal(t, 100, 30, ossrun(t, variables, "chat"))
	screen := term.wait("Choose 1 or 2", "This machine ", "are free", "gpt-oss-20b ",
		"1  download gpt-oss-20b: 13.8 GB, 18 min at 100 Mbit/s")
	if strings.Contains(screen, "GiB") || strings.Contains(screen, "KV") {
		t.Errorf("words of engineers:\n%s", screen)
	}
	term.send("21\r")
	term.wait(`"21" is none of them: type 1 or 2, or nothing for 2`)
	term.send("1\r")
	term.printed("gpt-oss-20b is ready")
	term.wait("Ask something", "gpt-oss-20b · CPU")
	if server.Sent("model.safetensors") == 0 {
		t.Error("nothing was fetched")
	}
}

// TestFirstRunOffersElsewhere: with no model of our own, the one in another program's folder is
// offered first, and answers.
func TestFirstRunOffersElsewhere(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	demo, err := checkpoint.OpenDemo()
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(ggufAt(demo, filepath.Join(folder, "tune.gguf"), modeltest.LlamaBF16),
		demo.Close())
	if err != nil {
		t.Fatal(err)
	}
	term, _ := runInTerminal(t, 120, 30, ossrun(t, []string{"HF_ENDPOINT=http://127.0.0.1:1",
		"LLAMA_CACHE=" + folder}, "chat"))
	term.wait(
		"1  use llama.cpp:tune.gguf, which llama.cpp has here: nothing is downloaded or copied",
		"2  download gpt-oss-20b", "Choose 1 to 3 [3]:")
	term.send("1\r")
	term.wait("Ask something", "tune · CPU")
}

// TestOfferInstead: before 13 GB are fetched, the same model in another program's folder is
// offered, and taken by a plain Enter.
func TestOfferInstead(t *testing.T) {
	t.Parallel()
	server, variables := aHub(t)
	folder := t.TempDir()
	if err := modeltest.WriteSparseGGUF(filepath.Join(folder, "ggml-org_gpt-oss-20b-mxfp4.gguf"),
		models.Spec20B()); err != nil {
		t.Fatal(err)
	}
	term, _ := runInTerminal(t, 160, 30, ossrun(t, append(variables, "LLAMA_CACHE="+folder), "pull",
		"20b"))
	term.wait("llama.cpp has llama.cpp:ggml-org_gpt-oss-20b-mxfp4.gguf.",
		"Use it in place instead of downloading 13.8 GB? [Y/n]")
	term.send("\r")
	term.wait("nothing was downloaded; ossrun chat --model " +
		"llama.cpp:ggml-org_gpt-oss-20b-mxfp4.gguf uses it")
	if n := server.Sent(""); n != 0 {
		t.Errorf("%d bytes were fetched", n)
	}
}
