// Where the machine's own python3 is installed, and which of its files a cell sees.
//
// PATH's python3 may be a link, a shim or a virtual environment. What must stay true: the cell runs
// the interpreter that it leads to, and sees that interpreter's own folders. It sees no folder that
// is, or contains, one in which people keep their files.

package python

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
)

// systemFolders lists the folders of programs and libraries that every cell sees.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/fonts", "/nix/store"}

// layout is how an interpreter is installed. Its paths contain no links.
type layout struct {
	program string
	mounts  []string // what it needs in addition to the system's folders
	sites   []string // those of mounts that are packages of a virtual environment
}

// layoutScript is the script that prints an interpreter's layout. The files that a process has
// mapped are the libraries that it cannot start without.
//
//go:embed layout.py
var layoutScript string

type installed struct {
	Program                          string
	Prefixes, Library, Sites, Mapped []string
}

func inspect(python string) (a installed, err error) {
	out, err := exec.Command(python, "-I", "-c", layoutScript).Output()
	if err == nil {
		err = json.Unmarshal(out, &a)
	}
	if err != nil {
		return a, fmt.Errorf("ask %s where it is installed: %w", python, err)
	}
	return a, nil
}

// findPython finds the interpreter for PATH's python3. Its error gives advice.
func findPython() (layout, error) {
	path, err := exec.LookPath("python3")
	if err != nil {
		return layout{}, errors.New("no python3 is installed. Install it: apt install python3")
	}
	return layoutOf(path)
}

func layoutOf(path string) (layout, error) {
	inspected, err := inspect(path)
	if err != nil {
		return layout{}, err
	}
	base, err := inspect(inspected.Program) // by its own path: a link may change its prefix
	if err != nil {
		return layout{}, err
	}
	private := privateFolders()
	l := layout{program: base.Program, sites: inspected.Sites}
	needs := slices.Concat([]string{base.Program}, base.Library, base.Mapped, inspected.Sites)
	for _, prefix := range base.Prefixes {
		if isPrivate(prefix, private) {
			return layout{}, refusal(path, prefix)
		}
		for _, part := range []string{"bin", "lib", "lib64", "share/zoneinfo"} {
			needs = append(needs, filepath.Join(prefix, part))
		}
	}
	slices.Sort(needs) // a folder before its contents
	for _, need := range needs {
		real, err := filepath.EvalSymlinks(need)
		if err != nil {
			continue // the prefix has no such part
		}
		if isPrivate(real, private) {
			return layout{}, refusal(path, real)
		}
		for _, name := range []string{need, real} { // both names are used
			mounts := slices.Concat(systemFolders, l.mounts)
			if !slices.ContainsFunc(mounts, func(m string) bool { return isWithin(name, m) }) {
				l.mounts = append(l.mounts, name)
			}
		}
	}
	return l, nil
}

func refusal(python, folder string) error {
	return fmt.Errorf("%s is installed in %s, which has files of yours. Put another python3 first "+
		"in PATH, such as that of apt install python3 or uv python install", python, folder)
}

// privateFolders lists the folders in which people and programs keep files.
func privateFolders() (list []string) {
	add := func(path string) {
		if !filepath.IsAbs(path) {
			return
		}
		list = append(list, filepath.Clean(path))
		if real, err := filepath.EvalSymlinks(path); err == nil {
			list = append(list, real)
		}
	}
	homes := []string{os.Getenv("HOME")}
	if me, err := user.Current(); err == nil {
		homes = append(homes, me.HomeDir)
	}
	for _, home := range homes {
		for _, folder := range []string{"", ".config", ".local/share", ".local/state", ".cache"} {
			if home != "" && home != "/" {
				add(filepath.Join(home, folder))
			}
		}
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
		"XDG_CACHE_HOME", "XDG_RUNTIME_DIR"} {
		add(os.Getenv(name))
	}
	add(os.TempDir())
	return list
}

// hiddenFolders lists the private folders inside folders that every cell sees, such as a home in
// /usr.
func hiddenFolders() (list []string) {
	for _, path := range privateFolders() {
		info, err := os.Lstat(path)
		if err == nil && info.IsDir() && isSystem(filepath.Dir(path)) &&
			!slices.ContainsFunc(list, func(above string) bool { return isWithin(path, above) }) {
			list = append(list, path)
		}
	}
	return list
}

// isPrivate tells whether a folder is or contains a private one, or is another user's home. It is
// false for the system's folders: their private folders are hidden.
func isPrivate(folder string, private []string) bool {
	return !isSystem(folder) && (filepath.Dir(folder) == "/home" ||
		slices.ContainsFunc(private, func(p string) bool { return isWithin(p, folder) }))
}

func isSystem(path string) bool {
	return slices.ContainsFunc(systemFolders, func(f string) bool { return isWithin(path, f) })
}

func isWithin(path, folder string) bool {
	rest, below := strings.CutPrefix(path, strings.TrimSuffix(folder, "/"))
	return below && (rest == "" || rest[0] == '/')
}
