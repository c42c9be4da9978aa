package term

import (
	"math"
	"testing"
)

// terminals are the colours that terminals show for the sixteen, and their backgrounds.
var terminals = []struct {
	name        string
	dark, light []int
	colours     [16]int
}{
	{"xterm", []int{0x000000, 0x1e1e2e}, []int{0xffffff}, [16]int{0x000000, 0xcd0000, 0x00cd00,
		0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
		0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff}},
	{"PuTTY", []int{0x000000}, nil, [16]int{0x000000, 0xbb0000, 0x00bb00, 0xbbbb00, 0x0000bb,
		0xbb00bb, 0x00bbbb, 0xbbbbbb, 0x555555, 0xff5555, 0x55ff55, 0xffff55, 0x5555ff, 0xff55ff,
		0x55ffff, 0xffffff}},
	{"the Linux console", []int{0x000000}, nil, [16]int{0x000000, 0xaa0000, 0x00aa00, 0xaa5500,
		0x0000aa, 0xaa00aa, 0x00aaaa, 0xaaaaaa, 0x555555, 0xff5555, 0x55ff55, 0xffff55, 0x5555ff,
		0xff55ff, 0x55ffff, 0xffffff}},
	{"Windows", []int{0x0c0c0c}, []int{0xffffff}, [16]int{0x0c0c0c, 0xc50f1f, 0x13a10e, 0xc19c00,
		0x0037da, 0x881798, 0x3a96dd, 0xcccccc, 0x767676, 0xe74856, 0x16c60c, 0xf9f1a5, 0x3b78ff,
		0xb4009e, 0x61d6d6, 0xf2f2f2}},
	{"GNOME", []int{0x1e1e1e}, []int{0xffffff}, [16]int{0x171421, 0xc01c28, 0x26a269, 0xa2734c,
		0x12488b, 0xa347ba, 0x2aa1b3, 0xd0cfcc, 0x5e5c64, 0xf66151, 0x33da7a, 0xe9ad0c, 0x2a7bde,
		0xc061cb, 0x33c7de, 0xffffff}},
}

// luminance and contrast are those of WCAG.
func luminance(colour int) (sum float64) {
	for i, weight := range []float64{0.0722, 0.7152, 0.2126} {
		part := float64(colour>>(8*i)&255) / 255
		if part <= 0.04045 {
			part /= 12.92
		} else {
			part = math.Pow((part+0.055)/1.055, 2.4)
		}
		sum += weight * part
	}
	return sum
}

func contrast(a, b int) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Every colour of a theme can be read on its backgrounds: 3:1, as WCAG asks for large text and
// signs.
func TestThemesCanBeRead(t *testing.T) {
	for _, terminal := range terminals {
		check := func(name string, theme Theme, backgrounds []int) {
			for _, background := range backgrounds {
				for c := Red; c <= Cyan; c++ {
					shown := theme.replace(c)
					if got := contrast(terminal.colours[shown], background); got < 3 {
						t.Errorf("%s: %s of %s as %s on %06x has a contrast of %.1f:1", terminal.name,
							colours[c], name, colours[shown], background, got)
					}
				}
			}
		}
		check("dark", Dark, terminal.dark)
		check("light", Light, terminal.light)
	}
}
