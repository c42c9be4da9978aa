package chat

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/session"
)

// painted writes a picture of one colour.
func painted(t *testing.T, path string, width, height int) {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range picture.Pix {
		picture.Pix[i] = []byte{200, 30, 30, 255}[i%4]
	}
	var b bytes.Buffer
	err := png.Encode(&b, picture)
	if strings.HasSuffix(path, ".jpg") {
		b.Reset()
		err = jpeg.Encode(&b, picture, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A picture outlives the tool's folder and is in the card under a name of its own.
func TestPicturesAreKept(t *testing.T) {
	theirs, ours := t.TempDir(), filepath.Join(t.TempDir(), "pictures")
	figure, text := filepath.Join(theirs, "figure-1.png"), filepath.Join(theirs, "data.csv")
	painted(t, figure, 8, 8)
	lie := filepath.Join(theirs, "lie.png")
	for _, path := range []string{text, lie} {
		if err := os.WriteFile(path, []byte("1,2"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tool := &scriptTool{result: session.ToolResult{Text: "ok", Files: []string{figure, text, lie}}}
	o := Options{Tools: []session.Tool{tool}, Pictures: ours, Store: diskStore(t)}
	answer := fine("Drawn.")
	s := newStage(t, 200, 40, o, append(calling(answer), calling(answer)...)...)
	s.ask("draw")
	s.play(0, step)
	s.ask("draw again")
	s.play(0, step)
	if err := os.RemoveAll(theirs); err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(ours, "figure-1.png"), lie, filepath.Join(ours, "figure-1-2.png"),
		lie}
	if got := s.m.talk.conversation.pictures(); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("pictures %q, want %q", got, want)
	}
	if shown := s.text(); !strings.Contains(shown, "╰ wrote figure-1-2.png, data.csv, lie.png\n") {
		t.Errorf("the folded cards:\n%s", shown)
	}
	s.keys("ctrl+t")
	if shown := s.text(); !strings.Contains(shown, "wrote "+want[2]) ||
		!strings.Contains(shown, "wrote "+text) {
		t.Errorf("the cards:\n%s", shown)
	}
	if _, _, err := readPicture(want[2]); err != nil {
		t.Error(err)
	}
	s.command("/show 3")
	if text := strings.Join(strings.Fields(s.text()), " "); !strings.Contains(text,
		"This terminal cannot show pictures. Saved as "+want[2]+".") {
		t.Errorf("/show without a way:\n%s", s.text())
	}
	s.command("/show 9")
	if !strings.Contains(s.text(), "No picture 9. This conversation has 4 pictures.") {
		t.Errorf("/show 9:\n%s", s.text())
	}
	s.m.background.Wait()
	o.Resume = s.m.record.id
	if got := newStage(t, 80, 24, o).m.talk.conversation.pictures(); len(got) != 4 ||
		got[2] != want[2] {
		t.Errorf("after /resume there are %q", got)
	}
}

// Each way of drawing gives back the picture.
func TestDraw(t *testing.T) {
	folder := t.TempDir()
	small, large := filepath.Join(folder, "a.png"), filepath.Join(folder, "b.jpg")
	painted(t, small, 12, 6)
	painted(t, large, 900, 700)
	var out bytes.Buffer
	if err := draw(&out, ITerm, small); err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(strings.TrimSuffix(out.String(), "\a"), ":")
	text, err := base64.StdEncoding.DecodeString(code)
	if original := read(t, small); err != nil || string(text) != original ||
		!strings.HasPrefix(out.String(), "\x1b]1337;File=inline=1;") {
		t.Errorf("iterm: %q: %v", out.String(), err)
	}
	out.Reset()
	if err := draw(&out, Kitty, large); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	pieces := strings.Split(strings.TrimSuffix(out.String(), "\x1b\\"), "\x1b\\")
	for i, piece := range pieces {
		control, data, _ := strings.Cut(strings.TrimPrefix(piece, "\x1b_G"), ";")
		last := i == len(pieces)-1
		if len(data) > 4096 || strings.HasSuffix(control, "m=1") == last ||
			strings.HasPrefix(control, "a=T,f=100,") != (i == 0) {
			t.Errorf("piece %d of %d: %q with %d bytes", i, len(pieces), control, len(data))
		}
		all.WriteString(data)
	}
	text, err = base64.StdEncoding.DecodeString(all.String())
	if err != nil {
		t.Fatal(err)
	}
	if c, err := png.DecodeConfig(bytes.NewReader(text)); err != nil || c.Width != 900 {
		t.Errorf("kitty: %+v: %v", c, err)
	}
	for _, path := range []string{filepath.Join(folder, "none.png"), "/etc/passwd"} {
		if err := draw(&out, Kitty, path); err == nil {
			t.Errorf("%s is drawn", path)
		}
	}
}

func TestGraphicsOf(t *testing.T) {
	for of, want := range map[[2]string]Graphics{{"xterm-kitty", ""}: Kitty,
		{"xterm-ghostty", "ghostty"}: Kitty, {"xterm-256color", "iTerm.app"}: ITerm,
		{"xterm-256color", "WezTerm"}: ITerm, {"foot", ""}: NoGraphics, {"xterm-256color", ""}: NoGraphics,
		{"tmux-256color", "tmux"}: NoGraphics, {"dumb", ""}: NoGraphics} {
		if got := GraphicsOf(of[0], of[1]); got != want {
			t.Errorf("%v: %q, want %q", of, got, want)
		}
	}
}
