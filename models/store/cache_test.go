package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestRoot(t *testing.T) {
	home := t.TempDir()
	for _, test := range []struct {
		name string
		set  map[string]string
		want string
	}{
		{"nothing set", nil, filepath.Join(home, ".cache", "huggingface", "hub")},
		{"XDG_CACHE_HOME", map[string]string{"XDG_CACHE_HOME": "/xdg"}, "/xdg/huggingface/hub"},
		{"HF_HOME", map[string]string{"XDG_CACHE_HOME": "/xdg", "HF_HOME": "/hf"}, "/hf/hub"},
		{"HF_HUB_CACHE", map[string]string{"XDG_CACHE_HOME": "/xdg", "HF_HOME": "/hf",
			"HF_HUB_CACHE": "/hub"}, "/hub"},
		{"old name", map[string]string{"HF_HOME": "/hf", "HUGGINGFACE_HUB_CACHE": "/old"}, "/old"},
		{"tilde", map[string]string{"HF_HOME": "~/weights"}, filepath.Join(home, "weights", "hub")},
		{"variable", map[string]string{"HF_HOME": "$HOME/weights/"},
			filepath.Join(home, "weights", "hub")},
		{"another's home is a name", map[string]string{"HF_HUB_CACHE": "~someone/hub"},
			"~someone/hub"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, name := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
				"XDG_CACHE_HOME"} {
				t.Setenv(name, test.set[name])
			}
			t.Setenv("HOME", home)
			got, err := Root()
			if err != nil || got != test.want {
				t.Errorf("root is %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestParseRepo(t *testing.T) {
	for _, id := range []string{"openai/gpt-oss-20b", "a/b", "Some_One/Name.v2"} {
		repo, ok := ParseRepo(id)
		if !ok || repo.ID() != id {
			t.Errorf("%s gives %v, %v", id, repo, ok)
		}
		if back, ok := ParseFolder(repo.Folder()); !ok || back != repo {
			t.Errorf("folder %s gives %v, %v", repo.Folder(), back, ok)
		}
	}
	for _, id := range []string{"", "a", "/", "a/", "/b", "a/b/c", "../b", "a/..", "a/.b", "a b/c",
		"a--b/c", "a/b\n", "./x", "a/" + strings.Repeat("b", 97)} {
		if repo, ok := ParseRepo(id); ok {
			t.Errorf("%q is taken as %v", id, repo)
		}
	}
	for _, folder := range []string{"models--a", "datasets--a--b", "models----b",
		"models--a--b--c"} {
		if repo, ok := ParseFolder(folder); ok {
			t.Errorf("folder %s is taken as %v", folder, repo)
		}
	}
}

func TestNamesOfBlobsAndCommits(t *testing.T) {
	hash := strings.Repeat("0f", 20)
	for _, etag := range []string{"a", hash, "A-b_c.D", "0", strings.Repeat("x", 200)} {
		if !ValidETag(etag) {
			t.Errorf("ETag %q is refused", etag)
		}
	}
	for _, etag := range []string{"", ".", "..", "-a", "_a", ".a", "a/b", `a\b`, "a b", "a\n", "é",
		"a\x00", strings.Repeat("x", 201)} {
		if ValidETag(etag) {
			t.Errorf("ETag %q is taken", etag)
		}
	}
	for _, commit := range []string{hash, strings.Repeat("9a", 32)} {
		if !ValidCommit(commit) {
			t.Errorf("commit %q is refused", commit)
		}
	}
	for _, commit := range []string{"", hash[1:], hash + "0", strings.ToUpper(hash),
		strings.Repeat("0", 63), "main", hash[1:] + "g", hash[1:] + "\n"} {
		if ValidCommit(commit) {
			t.Errorf("commit %q is taken", commit)
		}
	}
}

func TestSnapshots(t *testing.T) {
	root := t.TempDir()
	repo := Repo{"openai", "gpt-oss-20b"}
	folder := filepath.Join(root, repo.Folder())
	if list, err := Snapshots(root, repo); err != nil || list != nil {
		t.Errorf("an empty cache gives %v, %v", list, err)
	}
	commits := []string{strings.Repeat("a", 40), strings.Repeat("b", 40), strings.Repeat("c", 40)}
	for i, commit := range commits {
		path := filepath.Join(folder, "snapshots", commit)
		hosttest.Check(t, os.MkdirAll(path, 0o755))
		day := time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC)
		hosttest.Check(t, os.Chtimes(path, day, day))
	}
	hosttest.Check(t, os.WriteFile(filepath.Join(folder, "snapshots", "stray"), nil, 0o644))
	for ref, commit := range map[string]string{"main": commits[1] + "\n", "pr/4": commits[0]} {
		path := filepath.Join(folder, "refs", ref)
		hosttest.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		hosttest.Check(t, os.WriteFile(path, []byte(commit), 0o644))
	}
	for _, test := range []struct{ revision, want string }{
		{"", "b* c a"}, // main first, then the newest
		{"main", "b*"},
		{"pr/4", "a"},
		{commits[2], "c"},
		{commits[2][:7], "c"},
		{commits[2][:6], ""},
		{"no-such-branch", ""},
	} {
		list, err := Select(root, repo, test.revision)
		if err != nil {
			t.Errorf("revision %q: %v", test.revision, err)
		}
		var got []string
		for _, s := range list {
			name := s.Commit[:1]
			if s.Main {
				name += "*"
			}
			got = append(got, name)
			if r, ok := RepoOf(s.Path); !ok || r != repo {
				t.Errorf("%s belongs to %v, %v", s.Path, r, ok)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("revision %q gives %v, want %s", test.revision, got, test.want)
		}
	}
	for _, revision := range []string{"../../../secret", "/etc/passwd", "a b", "a\x00b", `..\x`} {
		if list, err := Select(root, repo, revision); err == nil {
			t.Errorf("revision %q gives %v", revision, list)
		}
	}
	hosttest.Check(t, os.MkdirAll(filepath.Join(root, "models--a--b"), 0o755))
	repos, err := Repos(root)
	if got := fmt.Sprint(repos); err != nil || got != "[{a b} {openai gpt-oss-20b}]" {
		t.Errorf("repositories are %s, %v", got, err)
	}
	if repos, err := Repos(filepath.Join(root, "none")); err != nil || repos != nil {
		t.Errorf("a missing cache has %v, %v", repos, err)
	}
}
