package python

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// home builds the ways in which people install python.
type home struct {
	*testing.T
	path, python, version string // python is an interpreter of the system, without links
	library               string // its standard library
}

func (h home) at(path string) string {
	full := filepath.Join(h.path, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		h.Fatal(err)
	}
	return full
}

func (h home) link(to, path string) string {
	if err := os.Symlink(to, h.at(path)); err != nil {
		h.Fatal(err)
	}
	return h.at(path)
}

// binary copies the interpreter alone.
func (h home) binary(path string) string {
	text, err := os.ReadFile(h.python)
	if err == nil {
		err = os.WriteFile(h.at(path), text, 0o755)
	}
	if err != nil {
		h.Fatal(err)
	}
	return h.at(path)
}

// install makes a folder the prefix of an interpreter.
func (h home) install(prefix string) string {
	h.link(h.library, prefix+"/lib/"+h.version)
	return h.binary(prefix + "/bin/python3")
}

func (h home) venv(python, path string) string {
	out, err := exec.Command(python, "-m", "venv", "--without-pip", h.at(path)).CombinedOutput()
	if err != nil {
		h.Fatalf("%v: %s", err, out)
	}
	h.write(path+"/lib/"+h.version+"/site-packages/planted.py", "x = 'of the venv'")
	return h.at(path + "/bin/python3")
}

func (h home) write(path, text string) string {
	if err := os.WriteFile(h.at(path), []byte(text), 0o755); err != nil {
		h.Fatal(err)
	}
	return h.at(path)
}

// However python is installed, a cell sees no file of the user, or it is refused.
func TestLayouts(t *testing.T) {
	hosttest.Program(t, "bwrap")
	base, err := inspect("/usr/bin/python3")
	if err != nil {
		hosttest.Lacks(t, "there is no /usr/bin/python3")
	}
	secrets := []string{"secret", "bin/secret", "lib/secret", ".local/secret",
		".local/share/ossrun/secret", ".config/secret", ".pyenv/secret", "project/.env",
		".local/share/uv/secret", ".local/bin/secret"}
	uv := ".local/share/uv/python/cpython-3-linux"
	const refused, venv = "which has files of yours. Put another python3 first in PATH", "of the venv"
	for name, c := range map[string]struct {
		build func(h home) string // the python3 that PATH has
		want  string
	}{
		"a prefix ~/.local":        {func(h home) string { return h.install(".local") }, refused},
		"a prefix ~":               {func(h home) string { return h.install("") }, refused},
		"a copy in ~/bin":          {func(h home) string { return h.binary("bin/python3") }, "7"},
		"a copy in ~/.local/bin":   {func(h home) string { return h.binary(".local/bin/python3") }, "7"},
		"a link in ~/bin":          {func(h home) string { return h.link("/usr/bin/python3", "bin/python3") }, "7"},
		"/usr/bin":                 {func(h home) string { return "/usr/bin/python3" }, "7"},
		"conda":                    {func(h home) string { return h.install("miniconda3") }, "7"},
		"a prefix with a link":     {func(h home) string { h.install(".local"); return h.link(".local", "p") + "/bin/python3" }, refused},
		"libraries are the home":   {func(h home) string { h.link("..", "p/lib64"); return h.install("p") }, refused},
		"libraries are .local":     {func(h home) string { h.link(h.at(".local"), "p/lib64"); return h.install("p") }, refused},
		"a prefix above XDG's":     {func(h home) string { h.Setenv("XDG_STATE_HOME", h.at("p/state/x")); return h.install("p") }, refused},
		"a prefix that is XDG's":   {func(h home) string { h.Setenv("XDG_DATA_HOME", h.at("p")); return h.install("p") }, refused},
		"a venv":                   {func(h home) string { return h.venv("/usr/bin/python3", "project/.venv") }, venv},
		"a venv that is a project": {func(h home) string { return h.venv("/usr/bin/python3", "project") }, venv},
		"a venv that is the home":  {func(h home) string { return h.venv("/usr/bin/python3", "") }, venv},
		"a venv of a ~/.local":     {func(h home) string { return h.venv(h.install(".local"), "v") }, refused},
		"uv's link": {func(h home) string {
			return h.link(h.install(uv), ".local/bin/python3")
		}, "7"},
		"uv's link to a version": {func(h home) string {
			h.install(uv + ".1")
			return h.link(h.link("cpython-3-linux.1", uv)+"/bin/python3", ".local/bin/python3")
		}, "7"},
		"a venv of uv's": {func(h home) string {
			return h.venv(h.link(h.install(uv), ".local/bin/python3"), "project/.venv")
		}, venv},
		"pyenv": {func(h home) string {
			real := h.install(".pyenv/versions/3")
			return h.write(".pyenv/shims/python3", "#!/bin/sh\nexec "+real+" \"$@\"\n")
		}, "7"},
	} {
		t.Run(name, func(t *testing.T) {
			h := home{t, t.TempDir(), base.Program, filepath.Base(base.Library[0]),
				base.Library[0]}
			t.Setenv("HOME", h.path)
			for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
				"XDG_CACHE_HOME"} {
				t.Setenv(name, "")
			}
			list := ""
			for _, secret := range secrets {
				list += fmt.Sprintf("%q,", h.write(secret, "secret"))
			}
			t.Setenv("PATH", filepath.Dir(c.build(h))+":"+os.Getenv("PATH"))
			tool, err := New(Options{Sandbox: "bwrap"})
			if c.want == refused {
				if err == nil {
					tool.Close()
				}
				if err == nil || !strings.Contains(err.Error(), refused) {
					t.Errorf("it is not refused: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer tool.Close()
			says(t, tool, "import os\n[p for p in ["+list+"] if os.path.exists(p)]", "[]\n")
			if c.want == venv {
				says(t, tool, "import planted; planted.x", venv)
			} else {
				says(t, tool, "import json, ctypes, ssl; 3 + 4", c.want)
			}
		})
	}
}
