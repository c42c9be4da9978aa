package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The requests of publish to gh; a gh that records its arguments replaces GitHub.
func TestPublish(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("releases are published on Linux")
	}
	publish, err := filepath.Abs("../publish")
	if err != nil {
		t.Fatal(err)
	}
	const files = "files/checksums.txt files/checksums.txt.minisig files/ossrun_1.2.3_linux_amd64.tar.gz\n"
	const created = "GITHUB release create v1.2.3 --draft --verify-tag --title v1.2.3 --notes-file notes.md " +
		files + "GITHUB release edit v1.2.3 --draft=false\n"
	for name, c := range map[string]struct {
		tag, taps   string
		change      func(folder string)
		fails, want string
	}{
		"a release": {"v1.2.3", "", nil, "", created},
		"to the taps": {"v1.2.3", "TAPS", nil, "", created +
			"TAPS api repos/ossrun/homebrew-tap/contents/Casks/ossrun.rb --jq .sha\n" +
			"TAPS api --silent --method PUT repos/ossrun/homebrew-tap/contents/Casks/ossrun.rb -f message=ossrun v1.2.3 " +
			"-f content=Y2Fzaw== -f sha=0123\n" +
			"TAPS api repos/ossrun/scoop-bucket/contents/ossrun.json --jq .sha\n" +
			"TAPS api --silent --method PUT repos/ossrun/scoop-bucket/contents/ossrun.json -f message=ossrun v1.2.3 " +
			"-f content=bWFuaWZlc3Q= -f sha=0123\n"},
		"to try out": {"v1.2.3-rc1", "TAPS", nil, "", "GITHUB release create v1.2.3-rc1 --draft --verify-tag --title " +
			"v1.2.3-rc1 --notes-file notes.md --prerelease " + files + "GITHUB release edit v1.2.3-rc1 --draft=false\n"},
		"without a signature": {"v1.2.3", "", func(folder string) {
			os.Remove(folder + "/files/checksums.txt.minisig")
		}, "the checksums are not signed", ""},
		"a changed file": {"v1.2.3", "", func(folder string) {
			write(t, folder+"/files/ossrun_1.2.3_linux_amd64.tar.gz", "Archive")
		}, "ossrun_1.2.3_linux_amd64.tar.gz is not what the checksums say", ""},
		"a file more": {"v1.2.3", "", func(folder string) {
			write(t, folder+"/files/ossrun_1.2.3_linux_amd64.tar", "archive")
		}, "ossrun_1.2.3_linux_amd64.tar is not what the checksums say", ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder, bin := handover(t), t.TempDir()
			if err := sign("1.2.3", folder+"/files", read(t, keys+"key.sec"), read(t, keys+"key.pub")); err != nil {
				t.Fatal(err)
			}
			write(t, bin+"/gh", "#!/bin/sh\necho \"$GH_TOKEN $*\" >>"+bin+"/asked\n"+
				"case $* in *--jq*) echo 0123 ;; esac\n")
			if c.change != nil {
				c.change(folder)
			}
			command := exec.Command(publish, c.tag, folder)
			command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "GH_TOKEN=GITHUB", "TAPS_TOKEN="+c.taps)
			out, err := command.CombinedOutput()
			if (err != nil) != (c.fails != "") || !strings.Contains(string(out), c.fails) {
				t.Errorf("%v: %s", err, out)
			}
			asked, _ := os.ReadFile(bin + "/asked") // not there: gh was not asked
			if string(asked) != c.want {
				t.Errorf("gh was asked\n%swant\n%s", asked, c.want)
			}
			if warned := strings.Contains(string(out), "::warning::TAPS_TOKEN"); warned != (name == "a release") {
				t.Errorf("warned: %v", warned)
			}
		})
	}
}
