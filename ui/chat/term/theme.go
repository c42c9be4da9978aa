// Themes: other colours in the place of those that the chat uses.

package term

import (
	"fmt"
	"slices"
	"strings"
)

// A Theme has, for each colour from Red to Cyan, the one that stands for it; 0 is itself.
type Theme [Cyan + 1]Style

// noColour stands for a colour that is left out.
const noColour = colour + 1

// Light is for a light background, on which some colours are hard to read.
var Light = Theme{Cyan: Blue, Yellow: Magenta, Green: Blue}

// colours are the names of the terminal's sixteen, by their numbers.
var colours = []string{"none", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "gray",
	"bright-red", "bright-green", "bright-yellow", "bright-blue", "bright-magenta", "bright-cyan",
	"bright-white"}

// ParseTheme reads dark, light, or a theme of one's own such as "light,red=magenta,green=none".
func ParseTheme(text string) (t Theme, err error) {
	for i, part := range strings.Split(strings.ToLower(text), ",") {
		part = strings.TrimSpace(part)
		switch {
		case i == 0 && (part == "dark" || part == ""):
			continue
		case i == 0 && part == "light":
			t = Light
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		of, to := slices.Index(colours, name), slices.Index(colours, value)
		if of < int(Red) || of > int(Cyan) || to < 0 {
			return t, fmt.Errorf("a theme is dark, light, or pairs as green=bright-blue: of %s; "+
				"to %s; not %q", strings.Join(colours[Red:Cyan+1], ", "),
				strings.Join(colours, ", "), part)
		}
		if t[of] = Style(to); to == 0 {
			t[of] = noColour
		}
	}
	return t, nil
}

func (t Theme) of(s Style) Style {
	c := s & colour
	if c == 0 || int(c) >= len(t) || t[c] == 0 {
		return s
	}
	return s&^colour | t[c]&colour
}
