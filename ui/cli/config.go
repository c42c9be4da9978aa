// The config file: a user's defaults for any flag of any verb, in YAML.
//
//	model: 20b
//	effort: high
//	port: 9000
//
// It is read from --config FILE, or else from ossrun/config.yaml in the XDG configuration folder,
// if present. A flag on the command line wins. Files for vLLM are read too (see vllm_flags.go for
// their keys). What must stay true: an unknown key is an error with the nearest name, and a bad
// value is reported with file and key, never ignored. A default file that cannot be read is skipped
// with a warning; the one of --config is not.

package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/adrg/xdg"
	"github.com/goccy/go-yaml"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/runtime/serve"
)

func defaultConfigPath() string { return filepath.Join(xdg.ConfigHome, "ossrun", "config.yaml") }

func applyConfig(app *cli.App, c *cli.Context) error {
	if slices.ContainsFunc(c.Command.Subcommands, func(sub *cli.Command) bool {
		return sub.HasName(c.Args().First())
	}) {
		return nil // the subcommand applies its own
	}
	path, explicit := defaultConfigPath(), false
	if c.IsSet("config") {
		path, explicit = c.String("config"), true
	}
	values, err := readConfig(path)
	if errors.Is(err, fs.ErrNotExist) && !explicit {
		return nil
	}
	if err != nil {
		err = fmt.Errorf("config file %s: %w", path, err)
		if !explicit && skipDefault(app.ErrWriter, err) == nil {
			return nil
		}
		return &exitError{exitUsage, err.Error()}
	}
	firstNames := map[string]string{} // names of all flags; for this verb's flags: the first name
	for _, cmd := range app.Commands {
		for _, f := range cmd.Flags {
			for _, n := range f.Names() {
				firstNames[n] = ""
			}
		}
	}
	for _, f := range c.Command.Flags {
		for _, n := range f.Names() {
			firstNames[n] = f.Names()[0]
		}
	}
	for _, n := range []string{"config", "print-config", "help"} {
		delete(firstNames, n)
	}
	for _, written := range slices.Sorted(maps.Keys(values)) {
		k := written
		if _, ok := firstNames[k]; !ok { // vLLM's spelling
			k = strings.ReplaceAll(k, "_", "-")
		}
		name, ok := firstNames[k]
		if !ok {
			nearest := models.Nearest(written, slices.Sorted(maps.Keys(firstNames)))
			return fail(exitUsage, "config file %s: %s", path,
				unknown("key", written, nearest, c.Command.HelpName+" --help-all"))
		}
		if name == "" || onCommandLine(c, name) || onCommandLine(c, opposite(name)) ||
			isAutomatic(name, values[written]) {
			continue
		}
		f := flagNamed(c.Command, name)
		noteSpelling(app, c.Command, k)
		if err := c.Set(name, expandUnits(f, values[written])); err != nil {
			return fail(exitUsage, "config file %s: "+
				"%s", path, invalidValue(f, name, values[written]))
		}
		noteOrigin(c, name, "config file "+path)
	}
	return nil
}

func onCommandLine(c *cli.Context, name string) bool {
	return c.IsSet(name) && origin(c, name) == commandLine
}

const commandLine = "command line"

// opposite negates a flag: enable-prefix-caching for no-enable-prefix-caching.
func opposite(name string) string {
	if bare, ok := strings.CutPrefix(name, "no-"); ok {
		return bare
	}
	return "no-" + name
}

// noteOrigin records the origin of a flag's value that is not from the command line.
func noteOrigin(c *cli.Context, name, where string) {
	if c.App.Metadata == nil {
		c.App.Metadata = map[string]any{}
	}
	c.App.Metadata["origin of "+name] = where
}

// origin is the origin of a flag's value, for --print-config.
func origin(c *cli.Context, name string) string {
	if where, ok := c.App.Metadata["origin of "+name].(string); ok {
		return where
	}
	if c.IsSet(name) {
		return commandLine
	}
	return "default"
}

// printConfig writes a verb's settings as a config file, with the defaults of m's device. Automatic
// values are comments, so that the file works on another machine.
func printConfig(w io.Writer, c *cli.Context, o *serve.Options, m *serve.Models) error {
	effective, device := m.Effective(), "CPU"
	*o = effective.Options // the flags are bound to o
	if m.OnGPU() {
		device = "GPU"
	}
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		visible, ok := f.(cli.VisibleFlag)
		unseen := ok && !visible.IsVisible() && !c.IsSet(name)
		if unseen || slices.Contains([]string{"config", "print-config", "help"}, name) {
			continue
		}
		from, value := origin(c, name), c.Value(name)
		if list, several := value.(cli.StringSlice); several {
			value = strings.Join(list.Value(), ",")
		}
		line := "# " + name + ":"
		switch {
		case name == "api-key" && value != "":
			from += "; not shown"
		case from == "default" && slices.Contains(effective.FromPreset, name):
			from = "preset " + effective.Preset
		case from == "default" && slices.Contains(deviceDefaults, name):
			from = "default for this " + device
		case from == "default" && (value == "" || value == 0 || value == 0.0 || value == uint64(0)):
			_, standard := usageAndDefault(f.(cli.DocGenerationFlag))
			from, value = "default: "+cmp.Or(standard, "unset"), nil
		}
		if value != nil && (name != "api-key" || value == "") {
			text, err := yaml.Marshal(value)
			if err != nil {
				return fail(exitFailure, "%s: %s", name, err)
			}
			line = name + ": " + strings.TrimSpace(string(text))
		}
		if _, err := fmt.Fprintf(w, "%-30s # %s\n", line, from); err != nil {
			return err
		}
	}
	return nil
}

// deviceDefaults are the flags whose default depends on the device.
var deviceDefaults = []string{"max-num-seqs", "max-num-batched-tokens", "max-waiting"}

// asJSON is a table as on vLLM's command line.
func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // keys that are not strings
		return fmt.Sprint(v)
	}
	return string(text)
}

// readConfig returns the file's keys with values as flag texts: lists joined by commas, tables as
// JSON.
func readConfig(path string) (map[string]string, error) {
	text, err := mapping.ReadText(path, mapping.MaxSettings)
	if err != nil {
		if inner := errors.Unwrap(err); inner != nil { // without the path
			err = inner
		}
		return nil, err
	}
	var raw map[string]any
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&raw); err != nil && !errors.Is(err,
		io.EOF) {
		return nil, errors.New(strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	values := map[string]string{}
	for k, v := range raw {
		switch v := v.(type) {
		case nil:
		case map[string]any:
			values[k] = asJSON(v)
		case []any:
			var parts []string
			for _, p := range v {
				switch p.(type) {
				case map[string]any, []any:
					parts = append(parts, asJSON(p))
				default:
					parts = append(parts, fmt.Sprint(p))
				}
			}
			values[k] = strings.Join(parts, ",")
		default:
			values[k] = fmt.Sprint(v)
		}
	}
	return values, nil
}
