package cli

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// The definitions are well-formed and start the program with exactly the given words.
func TestServiceDefinitions(t *testing.T) {
	words := []string{"/opt/my programs/ossrun", "serve", "20b", "--served-model-name",
		`a "b" & <c> $d %h \e`}
	linux, err := serviceFor("linux", words)
	if err != nil {
		t.Fatal(err)
	}
	line := `ExecStart="/opt/my programs/ossrun" "serve" "20b" "--served-model-name" ` +
		`"a \"b\" & <c> $$d %%h \\e"` + "\n"
	if !strings.Contains(linux.text, line) || !strings.Contains(linux.text, "Restart=on-failure") {
		t.Errorf("%s", linux.text)
	}
	for _, system := range []string{"darwin", "windows"} {
		s, err := serviceFor(system, words)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for d := xml.NewDecoder(strings.NewReader(s.text)); ; {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", system, err, s.text)
			}
			if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
				texts = append(texts, string(text))
			}
		}
		want := words
		if system == "windows" {
			want = []string{words[0], `serve 20b --served-model-name "a \"b\" & <c> $d %h \e"`}
		}
		at := slices.Index(texts, words[0])
		if at < 0 || len(texts) < at+len(want) || !slices.Equal(texts[at:at+len(want)], want) {
			t.Errorf("%s starts %q, not %q", system, texts, want)
		}
	}
	if _, err := serviceFor("plan9", words); err == nil {
		t.Error("plan9 has a service")
	}
	for word, want := range map[string]string{"": `""`, `a\`: `a\`, `a b\`: `"a b\\"`,
		`a\"b`: `"a\\\"b"`} {
		if got := windowsWord(word); got != want {
			t.Errorf("%s: %s, not %s", word, got, want)
		}
	}
}

// Install, status and remove, with a systemctl that records its arguments.
func TestServiceLife(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the stand-in is a systemctl")
	}
	folder := t.TempDir()
	log := filepath.Join(folder, "log")
	script := "#!/bin/sh\necho \"$@\" >> " + log + "\n[ ! -e " + folder + "/broken ]\n"
	write(t, filepath.Join(folder, "systemctl"), script)
	program := filepath.Join(folder, "ossrun")
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, program)
	}
	if err != nil {
		t.Fatal(err)
	}
	run := func(wantCode int, args ...string) (stdout, stderr string) {
		t.Helper()
		cmd := exec.Command(program, append([]string{"service"}, args...)...)
		cmd.Env = append(os.Environ(), "PATH="+folder, "HOME="+folder, "XDG_CONFIG_HOME="+filepath.Join(folder, "config"))
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // its code is looked at
		if code := cmd.ProcessState.ExitCode(); code != wantCode {
			t.Errorf("%v: exit code %d: %s", args, code, errs.String())
		}
		return out.String(), errs.String()
	}
	unit := filepath.Join(folder, "config", "systemd", "user", "ossrun.service")
	if _, errs := run(exitFailure, "status"); !strings.Contains(errs, "no service is installed") {
		t.Error(errs)
	}
	if _, errs := run(exitFailure, "remove"); !strings.Contains(errs, "no service is installed") {
		t.Error(errs)
	}
	shown, _ := run(exitOK, "print", "--", "20b", "--port", "8001")
	run(exitOK, "install", "--", "20b", "--port", "8001")
	written, err := os.ReadFile(unit)
	if err != nil || "# "+unit+"\n"+string(written) != shown ||
		!strings.Contains(shown, `"serve" "--pull=missing" "20b" "--port" "8001"`) {
		t.Errorf("%v\n%s\n%s", err, written, shown)
	}
	run(exitOK, "status")
	run(exitOK, "remove")
	if _, err := os.Stat(unit); !os.IsNotExist(err) {
		t.Errorf("remove left the unit: %v", err)
	}
	told, err := os.ReadFile(log)
	if err != nil || string(told) != "--user daemon-reload\n--user enable --now ossrun.service\n"+
		"--user --no-pager status ossrun.service\n--user disable --now ossrun.service\n" {
		t.Errorf("%v %s", err, told)
	}
	write(t, filepath.Join(folder, "broken"), "")
	if _, errs := run(exitFailure, "install"); !strings.Contains(errs, "daemon-reload") {
		t.Error(errs)
	}
}
