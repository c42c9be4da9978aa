// ossrun service: a server that starts at login and restarts on failure: a systemd user unit, a
// launchd agent, or a Windows task.
//
// What must stay true: nothing needs an administrator; install writes exactly what print shows;
// remove leaves only the server's own files.

package cli

import (
	"bytes"
	"embed"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/template"

	"github.com/adrg/xdg"
	"github.com/urfave/cli/v2"
)

const (
	unitName  = "ossrun.service"
	agentName = "ossrun.serve"
	taskName  = "ossrun"
)

type service struct {
	file    string     // of the definition
	text    string     // the definition
	install [][]string // commands after writing it
	remove  [][]string // and before deleting it
	status  []string
}

func serviceCommand() *cli.Command {
	verb := func(name string, do func(c *cli.Context, s service) error) *cli.Command {
		return &cli.Command{Name: name,
			Action: func(c *cli.Context) error {
				self, err := os.Executable()
				if err == nil {
					self, err = filepath.EvalSymlinks(self)
				}
				if err != nil {
					return fmt.Errorf("the path of this program: %w", err)
				}
				words := []string{self, "serve"}
				if !slices.ContainsFunc(c.Args().Slice(), func(word string) bool {
					return strings.HasPrefix(word, "--pull")
				}) {
					words = append(words, "--pull=missing") // no person is asked
				}
				words = append(words, c.Args().Slice()...)
				s, err := serviceFor(runtime.GOOS, words)
				if err != nil {
					return err
				}
				return do(c, s)
			}}
	}
	return &cli.Command{
		Name: "service",
		Subcommands: []*cli.Command{
			verb("install", installService),
			verb("remove", removeService),
			verb("status", serviceStatus),
			verb("print", func(c *cli.Context, s service) error {
				_, err := fmt.Fprintf(c.App.Writer, "# %s\n%s", s.file, s.text)
				return err
			}),
		},
		Action: subcommandsOnly("install, remove, status and print"),
	}
}

func serviceFor(system string, words []string) (service, error) {
	switch system {
	case "linux":
		file := filepath.Join(xdg.ConfigHome, "systemd", "user", unitName)
		user := func(words ...string) []string {
			return append([]string{"systemctl", "--user"}, words...)
		}
		return service{file, serviceFile("systemd.service", words),
			[][]string{user("daemon-reload"), user("enable", "--now", unitName)},
			[][]string{user("disable", "--now", unitName)},
			user("--no-pager", "status", unitName)}, nil
	case "darwin":
		file := filepath.Join(xdg.Home, "Library", "LaunchAgents", agentName+".plist")
		return service{file, serviceFile("launchd.plist", words),
			[][]string{{"launchctl", "load", "-w", file}},
			[][]string{{"launchctl", "unload", "-w", file}},
			[]string{"launchctl", "list", agentName}}, nil
	case "windows":
		file := filepath.Join(xdg.StateHome, "ossrun", "service.xml")
		return service{file, serviceFile("task.xml", words),
			[][]string{{"schtasks", "/Create", "/F", "/TN", taskName, "/XML", file},
				{"schtasks", "/Run", "/TN", taskName}},
			[][]string{{"schtasks", "/End", "/TN", taskName},
				{"schtasks", "/Delete", "/F", "/TN", taskName}},
			[]string{"schtasks", "/Query", "/V", "/FO", "LIST", "/TN", taskName}}, nil
	}
	return service{}, fail(exitFailure, "service knows Linux, macOS and Windows, not %s", system)
}

//go:embed service
var serviceFiles embed.FS

// serviceFile is a system's file for a server that is started by words. It restarts a failed one,
// and allows running answers as much time as serve does; wrong usage and missing models would only
// fail again.
func serviceFile(name string, words []string) string {
	special := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", "$$", "%", "%%")
	quoted := mapSlice(words, func(w string) string { return `"` + special.Replace(w) + `"` })
	texts := template.Must(template.New("").Funcs(template.FuncMap{"xml": escapeXML}).
		ParseFS(serviceFiles, "service/*"))
	var b strings.Builder
	// the files are part of the program, and a builder takes everything
	_ = texts.ExecuteTemplate(&b, name, map[string]any{"Name": agentName, "Words": words,
		"Quoted":    strings.Join(quoted, " "),
		"Arguments": strings.Join(mapSlice(words[1:], windowsWord), " "),
		"Log":       filepath.Join(xdg.Home, "Library", "Logs", "ossrun.log")})
	return b.String()
}

// windowsWord quotes for Windows, where a backslash is special only before a quote.
func windowsWord(w string) string {
	if w != "" && !strings.ContainsAny(w, " \t\"") {
		return w
	}
	var b strings.Builder
	b.WriteByte('"')
	slashes := 0
	for _, c := range []byte(w) {
		switch c {
		case '\\':
			slashes++
		case '"':
			b.WriteString(strings.Repeat(`\`, slashes+1))
			slashes = 0
		default:
			slashes = 0
		}
		b.WriteByte(c)
	}
	return b.String() + strings.Repeat(`\`, slashes) + `"`
}

func escapeXML(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return b.String()
}

func installService(c *cli.Context, s service) error {
	err := os.MkdirAll(filepath.Dir(s.file), 0o755)
	if err == nil {
		err = os.WriteFile(s.file, []byte(s.text), 0o600)
	}
	for _, words := range s.install {
		if err == nil {
			err = runServiceCommand(c, words)
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.App.ErrWriter, "the server starts with your session; %s has it, ossrun service "+
		"remove takes it away\n", s.file)
	if runtime.GOOS == "linux" {
		fmt.Fprintln(c.App.ErrWriter, "to start it without a session: loginctl enable-linger")
	}
	return nil
}

func removeService(c *cli.Context, s service) error {
	if _, err := os.Stat(s.file); errors.Is(err, os.ErrNotExist) {
		return fail(exitFailure, "no service is installed: %s does not exist", s.file)
	}
	var failed error
	for _, words := range s.remove {
		failed = errors.Join(failed, runServiceCommand(c, words))
	}
	return errors.Join(failed, os.Remove(s.file))
}

func serviceStatus(c *cli.Context, s service) error {
	if _, err := os.Stat(s.file); errors.Is(err, os.ErrNotExist) {
		return fail(exitFailure, "no service is installed. Run ossrun service install")
	}
	cmd := exec.CommandContext(c.Context, s.status[0], s.status[1:]...)
	cmd.Stdout, cmd.Stderr = c.App.Writer, c.App.ErrWriter
	if err := cmd.Run(); err != nil {
		return fail(exitFailure, "the service does not run: %s: %s", s.status[0], err)
	}
	return nil
}

func runServiceCommand(c *cli.Context, words []string) error {
	out, err := exec.CommandContext(c.Context, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fail(exitFailure, "%s: %s %s", strings.Join(words, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
