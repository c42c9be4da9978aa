// !command: a command of the person's shell, whose output becomes the next message.
//
// What must stay true: nothing runs before the person has confirmed it once in this chat, also when
// the text comes from a saved conversation; Esc ends the command with all that it started; its
// output is cleaned and bounded.

package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/process"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// maxCommandOutput ends a command that writes more bytes.
const maxCommandOutput = 64 << 10

// confirmCommand asks before the first !command of a chat; then the text is sent again.
func (m *Model) confirmCommand() tea.Cmd {
	m.modes.open(&confirmation{
		text: "Run this in your shell, and send the output to the model? Asked once in a chat.",
		yes:  "runs it", no: "does not", refused: "Nothing was run. A space before ! sends text.",
		do: func(m *Model) tea.Cmd {
			m.talk.shellAllowed = true
			return m.send()
		}})
	return nil
}

// runShell runs a command and returns its output as a message.
func runShell(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec 2>&1; "+command)
	process.OwnGroup(cmd)
	pipe, err := cmd.StdoutPipe()
	cmd.Cancel = func() error {
		process.End(cmd)
		return pipe.Close() // a program that has left the group may keep it open
	}
	cmd.WaitDelay = 2 * time.Second
	if err = errors.Join(err, cmd.Start()); err != nil {
		return "", err
	}
	out, _ := io.ReadAll(io.LimitReader(pipe, maxCommandOutput))
	if len(out) == maxCommandOutput {
		cancel()
	}
	err = cmd.Wait()
	ending := ""
	if err != nil {
		ending = fmt.Sprintf("\n(%v)", err)
	}
	text := term.Clean(strings.ToValidUTF8(string(out), ""))
	return fmt.Sprintf("I ran `%s`. Its output:\n%s%s", command,
		fenced("", strings.TrimRight(text, "\n")), ending), nil
}
