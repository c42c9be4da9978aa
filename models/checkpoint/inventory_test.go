package checkpoint_test

// Other known models than the released ones, the lists, and that weights in use are not deleted.

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestParseTarget(t *testing.T) {
	for name, want := range map[string]string{
		"20b":           "openai/gpt-oss-20b  gpt-oss-20b",
		"gpt-oss:120b":  "openai/gpt-oss-120b  gpt-oss-120b",
		"20b@v2":        "openai/gpt-oss-20b v2 gpt-oss-20b@v2",
		"safeguard-20b": "openai/gpt-oss-safeguard-20b  gpt-oss-safeguard-20b",
		"OpenAI/gpt-oss-safeguard-120b": "openai/gpt-oss-safeguard-120b  " +
			"gpt-oss-safeguard-120b",
		"hf:someone/tune":                     "someone/tune  someone/tune",
		"someone/tune@refs/pr/1":              "someone/tune refs/pr/1 someone/tune@refs/pr/1",
		"https://huggingface.co/someone/Tune": "someone/Tune  someone/Tune",
	} {
		target, err := models.ParseTarget(name)
		if got := target.Repo.ID() + " " + target.Revision + " " + target.Name; err != nil ||
			got != want {
			t.Errorf("%s is %s, %v, want %s", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"demo": "demo is built in", "20n": "did you mean 20b?",
		"hf:tune": "is not a Hugging Face repository", "20b@../x": "names no revision after the @",
		"nvidia/gpt-oss-120b-Eagle3-v2": "nvidia/gpt-oss-120b-Eagle3-v2 is an EAGLE-3 draft, " +
			"which guesses tokens for gpt-oss-120b and is not a model itself. The engine drafts",
		"hf:redhatai/gpt-oss-20b-speculator.eagle3": "RedHatAI/gpt-oss-20b-speculator.eagle3 is " +
			"an EAGLE-3 draft, which guesses tokens for gpt-oss-20b and is not a model itself. " +
			"The engine drafts",
		"someone/my-gpt-oss-20b-EAGLE3": "someone/my-gpt-oss-20b-EAGLE3 is an EAGLE-3 draft, " +
			"which guesses tokens for gpt-oss-20b and is not a model itself. The engine drafts",
		"hf:amd/gpt-oss-120b-w-mxfp4-a-fp8": "this version does not read it",
	} {
		if _, err := models.ParseTarget(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %s", name, err, want)
		}
		if _, err := checkpoint.Resolve(name); regexp.MustCompile("this version|The engine drafts").
			MatchString(want) && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("resolving %s gives %v, want %s", name, err, want)
		}
	}
}

func TestInventory(t *testing.T) {
	root := cache(t)
	put(t, root, "openai/gpt-oss-20b", strings.Repeat("a", 40), false,
		modeltest.New(modeltest.Tiny(), 3))
	put(t, root, "openai/gpt-oss-20b", strings.Repeat("b", 40), true,
		modeltest.New(modeltest.Tiny(), 3))
	put(t, root, "someone/tune", strings.Repeat("c", 40), true, modeltest.New(modeltest.Tiny(), 1))
	put(t, root, "openai/gpt-oss-safeguard-20b", strings.Repeat("d", 40), true,
		modeltest.New(modeltest.Tiny(), 1))
	other := modeltest.New(modeltest.Tiny(), 1)
	other.Config["model_type"] = "llama"
	put(t, root, "someone/other", strings.Repeat("e", 40), true, other)
	draft := modeltest.New(modeltest.Tiny(), 1)
	draft.Config["model_type"] = "llama"
	put(t, root, "nvidia/gpt-oss-120b-Eagle3-v2", strings.Repeat("f", 40), true, draft)
	list := hosttest.Must(checkpoint.Inventory())(t)
	var got []string
	for _, s := range list {
		line := s.Repo + " " + s.Commit[:1]
		if s.Main {
			line += " main"
		}
		if s.Note != "" {
			line += " noted"
		}
		if !s.Complete {
			line += " incomplete"
		}
		got = append(got, line)
	}
	want := "nvidia/gpt-oss-120b-Eagle3-v2 f main noted; openai/gpt-oss-20b b main; " +
		"openai/gpt-oss-20b a; openai/gpt-oss-safeguard-20b d main noted; someone/tune c main"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("listed are\n      %s\nwant: %s", text, want)
	}
	// A model for a special purpose is not chosen for a chat.
	plan, err := store.PlanRemoval(root, store.Repo{Owner: "openai", Name: "gpt-oss-20b"}, "")
	if err != nil || !plan.Complete {
		t.Fatalf("the removal is %+v, %v", plan, err)
	}
	hosttest.Check(t, plan.Run())
	if found, ok := checkpoint.BestFit(1 << 50); ok {
		t.Errorf("the best that is left is %s", found.Name)
	}
}

func TestRemovalWaitsForReaders(t *testing.T) {
	root := cache(t)
	path := put(t, root, "someone/tune", strings.Repeat("c", 40), true,
		modeltest.New(modeltest.Tiny(), 2))
	c := hosttest.Must(checkpoint.Open(path))(t)
	plan := hosttest.Must(store.PlanRemoval(root, store.Repo{Owner: "someone", Name: "tune"},
		""))(t)
	if plan.Bytes < 100_000 || len(plan.Snapshots) != 1 {
		t.Errorf("the removal is %+v", plan)
	}
	var busy *store.InUseError
	if err := plan.Run(); !errors.As(err, &busy) {
		t.Errorf("with a reader the removal gives %v", err)
	}
	if again, err := checkpoint.Open(path); err != nil {
		t.Errorf("a second reader: %v", err)
	} else {
		again.Close()
	}
	hosttest.Check(t, c.Close())
	hosttest.Check(t, plan.Run())
	if _, err := os.Stat(path); err == nil {
		t.Error("the snapshot is still there")
	}
}
