// Pictures made by tools: each is copied to a permanent folder, numbered in its call, and shown if
// the terminal can.
//
// What must stay true: the copy outlives the tool's own folder; a file is read only if its name and
// first bytes are a picture's, and up to a size; a picture that cannot be copied keeps the tool's
// path.

package chat

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // formats of tools, besides PNG
	_ "image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/term"
)

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

// copyPicture writes a copy under an unused name.
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

// showPicture shows picture N, or the last, until Enter.
func showPicture(m *Model, number string) tea.Cmd {
	all := m.talk.conversation.pictures()
	n, ok := nth(number, len(all), len(all))
	switch {
	case len(all) == 0:
		return m.note("No tool has made a picture in this conversation.")
	case !ok:
		return m.showError(fmt.Sprintf("No picture %s. This conversation has %s.", number,
			formatCount(len(all), "picture")))
	}
	path := all[n-1]
	if m.options.Graphics == NoGraphics || m.plain {
		return m.showNotice("This terminal cannot show pictures. Saved as " + path + ".")
	}
	graphics := m.options.Graphics
	return m.background.run(func() tea.Msg {
		picture := &pictureScreen{path: path}
		if err := draw(&picture.drawn, graphics, path); err != nil {
			return failed{fmt.Errorf("show: %w", err)}
		}
		return pictureReady{picture}
	})
}

type pictureReady struct{ screen *pictureScreen }

func (r pictureReady) apply(*Model) tea.Cmd {
	return tea.Exec(r.screen, func(err error) tea.Msg {
		if err != nil {
			return failed{fmt.Errorf("show: %w", err)}
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
