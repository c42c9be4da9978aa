// Files of a conversation: those named as @path in a message, long pastes, which the editor shows
// as a chip, and pictures made by tools. Each picture is copied to a permanent folder, numbered in
// its call, and shown if the terminal can.
//
// What must stay true: the copy outlives the tool's own folder; a file is read only if its name and
// first bytes are a picture's, and up to a size; a picture that cannot be copied keeps the tool's
// path.

package chat

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // formats of tools, besides PNG
	_ "image/jpeg"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools/pdf"
	"github.com/ossrun/ossrun/ui/chat/term"
)

const (
	chipLines      = 15
	chipBytes      = 2000
	maxFileBytes   = 1 << 20
	maxCompletions = 50
)

func (i *input) paste(text string) {
	lines := strings.Count(text, "\n") + 1
	if lines <= chipLines && len(text) <= chipBytes {
		i.editor.insert(text)
		return
	}
	i.pastes = append(i.pastes, term.Clean(text))
	i.editor.insert(chip(len(i.pastes), text))
}

func chip(n int, text string) string {
	return fmt.Sprintf("[paste %d: %s lines, %s characters]", n, // saved with unsent text
		term.Number(strings.Count(text, "\n")+1), term.Number(utf8.RuneCountInString(text)))
}

// prepare saves a message, reads its attachments, then asks it.
func (m *Model) prepare(text string, replaced *exchange) tea.Cmd {
	command, isCommand := strings.CutPrefix(text, "!")
	text = strings.TrimSpace(text)
	sent := text
	if strings.HasPrefix(text, "!") && !isCommand {
		text = " " + text // in the editor again it must not become a command
	}
	for i, p := range m.input.pastes {
		sent = strings.Replace(sent, chip(i+1, p), "\n"+p+"\n", 1)
	}
	if m.record.saver.store == nil && !strings.Contains(text, "@") && !isCommand {
		return m.ask(text, sent, replaced)
	}
	m.talk.preparing = text
	wait, p := m.saveAndWait(), prepared{text: text, sent: sent, id: m.record.id,
		replaced: replaced}
	ctx, cancel := context.WithCancel(m.ctx)
	m.talk.stopPreparing = cancel
	return m.background.run(func() tea.Msg {
		defer cancel()
		if wait(); isCommand {
			p.sent, p.err = runShell(ctx, strings.TrimSpace(command))
		} else {
			p.files, p.attached, p.missing, p.err = attachments(ctx, text)
		}
		return p
	})
}

// prepared is a saved message with its attachments.
type prepared struct {
	text, sent        string // sent: with pastes in place of chips
	id                string // of the conversation
	replaced          *exchange
	files             string
	attached, missing []string
	err               error
}

func (p prepared) apply(m *Model) tea.Cmd {
	t := &m.talk
	if t.preparing != p.text || m.record.id != p.id {
		return nil // given back to the editor, or another conversation is open
	}
	t.preparing = ""
	if p.err != nil {
		m.showError(sentence(p.err.Error()) + "\nYour message is back in the editor.")
		t.queued, t.editing = append([]string{p.text}, t.queued...), p.replaced
		m.returnQueued()
		m.save()
		return nil
	}
	for _, a := range p.attached {
		m.appendEntry(newNotice(m.palette, "·", term.Dim, "attached "+a))
	}
	for _, path := range p.missing {
		m.showNotice("@" + path + " is not a file, so it was sent as text.")
	}
	return m.ask(p.text, p.sent+p.files, p.replaced)
}

// attachments returns the files named in a message, a line about each, and paths that are no file.
func attachments(ctx context.Context, text string) (files string, attached, missing []string,
	err error) {
	for i, c := range text {
		if c != '@' || i > 0 && !strings.ContainsRune(" \t\n", rune(text[i-1])) {
			continue
		}
		file := mentionIn(text[i+1:])
		if file.path == "" {
			continue
		}
		content, err := attachment(ctx, file)
		if errors.Is(err, os.ErrNotExist) {
			missing = append(missing, file.path)
			continue
		}
		if err != nil {
			return "", nil, nil, err
		}
		files += "\n\nFile " + file.path + file.lines + ":\n" + fenced("", content)
		attached = append(attached, file.path+file.lines+", "+
			term.Count(len(token.Get().Encode(nil, content)), "token"))
	}
	return files, attached, missing, nil
}

// maxBlanks is how many blanks a file name may have.
const maxBlanks = 20

// pathIn is the path at the beginning of text: the longest prefix that names a file, blanks
// included and trailing punctuation excluded, or else the first word.
func pathIn(text string) string {
	if end := strings.IndexAny(text, "\n\r\t"); end >= 0 {
		text = text[:end]
	}
	words := strings.SplitAfterN(text, " ", maxBlanks+2)
	for n := min(len(words), maxBlanks+1); n > 0; n-- {
		path := strings.TrimRight(strings.Join(words[:n], ""), " ")
		for _, path := range []string{path, strings.TrimRight(path, punctuation)} {
			if isFile(path) {
				return path
			}
		}
	}
	word := strings.TrimRight(words[0], " ")
	if plain := strings.TrimRight(word, punctuation); plain != "" {
		if _, err := os.Stat(expandHome(word)); err != nil {
			return plain
		}
	}
	return word
}

func isFile(path string) bool {
	info, err := os.Stat(expandHome(path))
	return err == nil && !info.IsDir()
}

const punctuation = ".,;:!?)]}>'\"`"

func attachment(ctx context.Context, f mentioned) (string, error) {
	path, limit := f.path, int64(maxFileBytes)
	if strings.EqualFold(filepath.Ext(path), ".pdf") {
		limit = pdf.MaxBytes
	}
	info, err := os.Stat(expandHome(path))
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return "", fmt.Errorf("@%s is a folder. Attach a file, for example @%s", path,
			filepath.Join(path, "notes.txt"))
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("@%s is not a regular file. Attach another", path)
	case info.Size() > limit:
		return "", fmt.Errorf("@%s has %s bytes: at most %s can be attached", path,
			term.Number(int(info.Size())), term.Number(int(limit)))
	}
	content, err := os.ReadFile(expandHome(path))
	if err != nil {
		return "", fmt.Errorf("attach: %w", err)
	}
	if pdf.Is(content) {
		text, err := pdf.Text(ctx, content)
		if err != nil {
			return "", fmt.Errorf("@%s cannot be read: %w", path, err)
		}
		content = []byte(text)
	} else if content, err = f.cut(content); err != nil {
		return "", err
	}
	if !utf8.Valid(content) {
		return "", fmt.Errorf("@%s is no UTF-8 text", path)
	}
	return strings.TrimRight(string(content), "\n"), nil
}

func expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

// pathStart is the index of the @path at the end of text, or -1. The path may contain blanks.
func pathStart(text string) int {
	line := strings.LastIndexByte(text, '\n') + 1
	i := strings.LastIndexByte(text[line:], '@')
	if i < 0 || i > 0 && text[line+i-1] != ' ' {
		return -1
	}
	return line + i
}

// globEscaper escapes the characters of a path that are special to Glob.
var globEscaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// completePath completes the @path that starts at index and ends the text.
func completePath(m *Model, start int) tea.Cmd {
	text := m.input.editor.text
	path := text[start+1:]
	return m.background.run(func() tea.Msg {
		matches, err := filepath.Glob(globEscaper.Replace(expandHome(path)) + "*")
		if err != nil || len(matches) == 0 {
			return shortNote("no file begins with " + path)
		}
		common := matches[0]
		for _, f := range matches[1:] {
			for !strings.HasPrefix(f, common) {
				common = common[:len(common)-1]
			}
		}
		if info, err := os.Stat(common); err == nil && info.IsDir() && len(matches) == 1 {
			common += "/"
		}
		c := pathCompleted{text: text, completed: text[:start] + "@" + common}
		for _, f := range matches[:min(len(matches), maxCompletions)] {
			c.names = append(c.names, filepath.Base(f))
		}
		return c
	})
}

type pathCompleted struct {
	text, completed string
	names           []string
}

func (c pathCompleted) apply(m *Model) tea.Cmd {
	if m.input.editor.text == c.text {
		m.input.editor.set(c.completed)
	}
	if len(c.names) == 1 {
		c.names = nil
	}
	return m.note(strings.Join(c.names, "  "))
}

func composeMessage(m *Model) tea.Cmd {
	program := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"))
	if program == "" || m.plain {
		return m.showError("No editor is set. Set EDITOR, for example to vi.")
	}
	text := m.input.editor.text
	return m.background.run(func() tea.Msg {
		file, err := os.CreateTemp("", "ossrun-*.md")
		if err == nil {
			_, err = file.WriteString(text)
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			return failure{fmt.Errorf("opening an editor: %w", err)}
		}
		cmd := exec.Command("sh", "-c", program+` "$0"`, file.Name())
		cmd.Stdin = m.options.In // the terminal itself: see keyInput
		return editorReady{cmd, file.Name()}
	})
}

// editorReady and editorClosed are $EDITOR before and after it ran on the file path.
type editorReady struct {
	cmd  *exec.Cmd
	path string
}

func (r editorReady) apply(*Model) tea.Cmd {
	return tea.ExecProcess(r.cmd, func(err error) tea.Msg { return editorClosed{r.path, err} })
}

type editorClosed struct {
	path string
	err  error
}

// apply reads the edited text back, or reports why editing failed.
func (c editorClosed) apply(m *Model) tea.Cmd {
	return m.background.run(func() tea.Msg {
		text, err := os.ReadFile(c.path)
		if err := errors.Join(c.err, err, os.Remove(c.path)); err != nil {
			return failure{fmt.Errorf("the editor failed: %w", err)}
		}
		return composed(strings.TrimRight(string(text), "\n"))
	})
}

type composed string

func (c composed) apply(m *Model) tea.Cmd {
	m.input.editor.set("")
	m.input.editor.insert(string(c))
	return nil
}

const (
	maxPictureBytes = 20 << 20
	maxPictureSide  = 10_000 // width and height, in pixels
)

// A Graphics is a terminal's protocol for pictures.
type Graphics string

const (
	NoGraphics Graphics = ""
	Kitty      Graphics = "kitty"
	ITerm      Graphics = "iterm"
)

// GraphicsOf chooses by TERM and TERM_PROGRAM. tmux sets both to its own names, which have none.
func GraphicsOf(termName, program string) Graphics {
	termName, program = strings.ToLower(termName), strings.ToLower(program)
	switch {
	case strings.Contains(termName, "kitty"), strings.Contains(termName, "ghostty"):
		return Kitty
	case program == "iterm.app", program == "wezterm", program == "mintty":
		return ITerm
	}
	return NoGraphics
}

func isPicture(path string) bool {
	extensions := []string{".png", ".jpg", ".jpeg", ".gif"}
	return slices.Contains(extensions, strings.ToLower(filepath.Ext(path)))
}

// keepPictures copies a call's pictures into a folder and replaces their paths.
func keepPictures(folder string, e session.ToolEnd) session.ToolEnd {
	if folder == "" {
		return e
	}
	files := append([]string(nil), e.Result.Files...)
	for i, f := range files {
		if copied, err := copyPicture(folder, f); err == nil {
			files[i] = copied
		}
	}
	e.Result.Files = files
	return e
}

func copyPicture(folder, path string) (string, error) {
	text, _, err := readPicture(path)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	name, end := filepath.Base(path), filepath.Ext(path)
	for n := 2; ; n++ {
		to := filepath.Join(folder, name)
		f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(filepath.Base(path), end), n, end)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(text)
		return to, errors.Join(err, f.Close())
	}
}

func readPicture(path string) (text []byte, picture image.Config, err error) {
	if !isPicture(path) {
		return nil, picture, fmt.Errorf("%s is no picture", path)
	}
	if text, err = mapping.ReadFile(path, maxPictureBytes); err != nil {
		return nil, picture, err
	}
	if picture, _, err = image.DecodeConfig(bytes.NewReader(text)); err != nil {
		return nil, picture, fmt.Errorf("%s: %w", path, err)
	}
	if picture.Width > maxPictureSide || picture.Height > maxPictureSide {
		return nil, picture, fmt.Errorf("%s has %d by %d pixels: up to %d are shown", path,
			picture.Width, picture.Height, maxPictureSide)
	}
	return text, picture, nil
}

func draw(w io.Writer, graphics Graphics, path string) error {
	text, _, err := readPicture(path)
	if err != nil {
		return err
	}
	if graphics == ITerm {
		_, err := fmt.Fprintf(w, "\x1b]1337;File=inline=1;size=%d;preserveAspectRatio=1:%s\x07",
			len(text), base64.StdEncoding.EncodeToString(text))
		return err
	}
	picture, kind, err := image.Decode(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if kind != "png" {
		var b bytes.Buffer
		if err := png.Encode(&b, picture); err != nil {
			return err
		}
		text = b.Bytes()
	}
	const piece = 4096 // of base64, by the protocol
	code := base64.StdEncoding.EncodeToString(text)
	for first := "a=T,f=100,"; code != ""; first = "" {
		part := code[:min(piece, len(code))]
		code = code[len(part):]
		continued := min(len(code), 1)
		if _, err := fmt.Fprintf(w, "\x1b_G%sm=%d;%s\x1b\\", first, continued, part); err != nil {
			return err
		}
	}
	return nil
}

// pictures are the files of the visible branch, in the order of their numbers.
func (c *conversation) pictures() (all []string) {
	for _, e := range c.questions() {
		for _, p := range e.answer.parts {
			if c, ok := p.(*call); ok {
				notPicture := func(path string) bool { return !isPicture(path) }
				all = append(all, slices.DeleteFunc(slices.Clone(c.files), notPicture)...)
			}
		}
	}
	return all
}

func pictureValues(m *Model) []choice {
	return numberedChoices("show", m.talk.conversation.pictures())
}

func showPicture(m *Model, number string) tea.Cmd {
	all := m.talk.conversation.pictures()
	n, ok := nth(number, len(all), len(all))
	switch {
	case len(all) == 0:
		return m.note("No tool has made a picture in this conversation.")
	case !ok:
		return m.showError(fmt.Sprintf("No picture %s. This conversation has %s.", number,
			term.Count(len(all), "picture")))
	}
	path := all[n-1]
	if m.options.Graphics == NoGraphics || m.plain {
		return m.showNotice("This terminal cannot show pictures. Saved as " + path + ".")
	}
	graphics := m.options.Graphics
	return m.background.run(func() tea.Msg {
		picture := &pictureScreen{path: path}
		if err := draw(&picture.drawn, graphics, path); err != nil {
			return failure{fmt.Errorf("show: %w", err)}
		}
		return pictureReady{picture}
	})
}

type pictureReady struct{ screen *pictureScreen }

func (r pictureReady) apply(*Model) tea.Cmd {
	return tea.Exec(r.screen, func(err error) tea.Msg {
		if err != nil {
			return failure{fmt.Errorf("show: %w", err)}
		}
		return nil
	})
}

// pictureScreen draws a picture on the released terminal.
type pictureScreen struct {
	path  string
	drawn bytes.Buffer // escape sequences for the terminal
	in    io.Reader
	out   io.Writer
}

func (s *pictureScreen) SetStdin(r io.Reader)  { s.in = r }
func (s *pictureScreen) SetStdout(w io.Writer) { s.out = w }
func (s *pictureScreen) SetStderr(io.Writer)   {}

func (s *pictureScreen) Run() error {
	if _, err := s.drawn.WriteTo(s.out); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.out, "\r\n%s\r\nEnter goes back to the chat. ",
		term.Clean(s.path)); err != nil {
		return err
	}
	_, err := bufio.NewReaderSize(s.in, 16).ReadString('\n')
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
