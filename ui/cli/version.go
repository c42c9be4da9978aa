// ossrun version.

package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// Version is set by the release build; a plain go build takes what the module records.
var Version = ""

type buildInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func build() buildInfo {
	b := buildInfo{Version: Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if b.Version == "" {
			b.Version = info.Main.Version
		}
		dirty := ""
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				if s.Value == "true" {
					dirty = "+changes"
				}
			}
		}
		if b.Commit != "" {
			b.Commit += dirty
		}
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	if b.Commit == "" {
		b.Commit = "unknown"
	}
	return b
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print version, commit and platform",
		Description: "Example: ossrun version --json\n\n" +
			exitCodes,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "as one JSON object"}},
		Action: func(c *cli.Context) error {
			b := build()
			if c.Bool("json") {
				return json.NewEncoder(c.App.Writer).Encode(b)
			}
			_, err := fmt.Fprintf(c.App.Writer, "ossrun %s (commit %s, %s, %s/%s)\n", b.Version, b.Commit, b.Go, b.OS, b.Arch)
			return err
		},
	}
}
