// ossrun version.

package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/runtime/serve"
)

// Version is set by the release build; other builds use the module's version.
var Version = ""

// kernelHashes identify a build's kernels: builds that compute the same way have equal hashes.
type kernelHashes struct {
	CPU string `json:"cpu"` // of the CPU engine's sources
	GPU string `json:"gpu"` // of the manifest of the compiled GPU kernels; "" if none
}

type buildInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`

	Kernels kernelHashes `json:"kernels"`
	Static  bool         `json:"static"` // no dynamic loader: GPU drivers only through a worker
	Worker  bool         `json:"worker"` // a GPU worker is embedded

	Verified string `json:"verified,omitempty"` // with --verify: the executable's SHA-256
}

func build() buildInfo {
	b := buildInfo{Version: Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		b.Version, b.Commit = cmp.Or(b.Version, info.Main.Version), settings["vcs.revision"]
		if b.Commit != "" && settings["vcs.modified"] == "true" {
			b.Commit += "+changes"
		}
	}
	b.Version, b.Commit = cmp.Or(b.Version, "(devel)"), cmp.Or(b.Commit, "unknown")
	return b
}

// fullBuild adds the kernel hashes, which takes a moment.
func fullBuild() (b buildInfo, err error) {
	b = build()
	if b.Kernels.CPU, err = serve.CPUKernelHash(); err != nil {
		return b, fail(exitFailure, "hashing the kernels: %s", err)
	}
	b.Kernels.GPU = assets.KernelHash()
	b.Static, b.Worker = serve.Static, len(assets.GPUWorker) > 0
	return b, nil
}

func (b buildInfo) String() string {
	platform := b.OS + "/" + b.Arch
	if b.Static {
		platform += ", static"
	}
	return fmt.Sprintf("ossrun %s (commit %s, kernels cpu %s gpu %s, %s, %s)", b.Version, b.Commit,
		b.Kernels.CPU, cmp.Or(b.Kernels.GPU, "none"), b.Go, platform)
}

func versionCommand() *cli.Command {
	var from string
	return &cli.Command{
		Name: "version",
		Flags: flagTable(boolFlag("json"),
			boolFlag("verify"),
			textFlag(&from, "from")),
		Action: func(c *cli.Context) error {
			b, err := fullBuild()
			if err == nil && c.Bool("verify") {
				b.Verified, err = b.verify(c.Context, from)
			} else if err == nil && from != "" {
				err = fail(exitUsage, "--from needs --verify")
			}
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return json.NewEncoder(c.App.Writer).Encode(b)
			}
			if _, err = fmt.Fprintln(c.App.Writer, b); err == nil && b.Verified != "" {
				_, err = fmt.Fprintf(c.App.Writer, "verified: SHA-256 %s is that of the release\n",
					b.Verified)
			}
			return err
		},
	}
}
