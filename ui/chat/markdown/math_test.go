package markdown

import (
	"strings"
	"testing"
	"unicode"
)

func TestMath(t *testing.T) {
	for latex, want := range map[string]string{
		`x^2 + y^2 = z^2`:                        `x² + y² = z²`,
		`\frac{a}{b}`:                            `a/b`,
		`\frac{-b \pm \sqrt{b^2 - 4ac}}{2a}`:     `(-b ± √(b² - 4ac))/2a`,
		`\frac12`:                                `1/2`,
		`\sqrt{2}`:                               `√2`,
		`\sqrt[3]{x+1}`:                          `∛(x+1)`,
		`\sqrt[n]{x}`:                            `ⁿ√x`,
		`\sum_{i=1}^{n} i = \frac{n(n+1)}{2}`:    `∑ᵢ₌₁ⁿ i = (n(n+1))/2`,
		`\int_0^\infty e^{-x}\,dx = 1`:           `∫₀^∞ e⁻ˣ dx = 1`,
		`\alpha\beta\Gamma`:                      `αβΓ`,
		`a\times b\le c`:                         `a × b ≤ c`,
		`\lim_{n \to \infty} a_n`:                `lim_(n → ∞) aₙ`,
		`x \in \mathbb{R}, f'(x) \neq 0`:         `x ∈ ℝ, f′(x) ≠ 0`,
		`e^{i\pi} + 1 = 0`:                       `e^(iπ) + 1 = 0`,
		`90^\circ`:                               `90°`,
		`\left( \frac{1}{2} \right)^{k+1}`:       `( 1/2 )ᵏ⁺¹`,
		`v = 3\,\text{m/s}`:                      `v = 3 m/s`,
		`\{1,2\}`:                                `{1,2}`,
		`\boxed{42}`:                             `42`,
		`\log_2 8 = 3`:                           `log₂ 8 = 3`,
		`A^T B_Q`:                                `Aᵀ B_Q`,
		`x_{ij}^{2}`:                             `xᵢⱼ²`,
		`P(A \mid B) = \frac{P(A \cap B)}{P(B)}`: `P(A | B) = (P(A ∩ B))/P(B)`,
		`O(n \log n)`:                            `O(n log n)`,
		`\begin{matrix} 1 & 2 \end{matrix}`:      ``, // unaltered, as all that follow
		`\overline{x}`:                           ``,
		`\unknown{x}`:                            ``,
		`a^`:                                     ``,
		`{a`:                                     ``,
		`a}`:                                     ``,
		`x \\ y`:                                 ``,
		`\mathbb{Y}`:                             ``,
		`\frac{}{2}`:                             ``,
		strings.Repeat("{", 99) + "x":            ``,
		`\text{if } x^2 \text{ is } \textbf{\$5}`: ``,
	} {
		if want == "" {
			want = latex
		}
		if got := Math(latex); got != want {
			t.Errorf("%s: %q, want %q", latex, got, want)
		}
	}
}

// essence is the part of a formula that must not be lost: letters and digits outside commands, and
// signs; small characters count as the ones they replace.
func essence(text string, latex bool) string {
	back := map[rune]rune{}
	for _, table := range []map[rune]rune{mathUp, mathDown} {
		for r, small := range table {
			back[small] = r
		}
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		if latex && text[i] == '\\' {
			n := 1
			for i+n < len(text) && isLetter(text[i+n]) {
				n++
			}
			name := text[i+1 : i+n]
			switch {
			case n == 1 && i+1 < len(text) && strings.ContainsRune(`{}%$&#_`, rune(text[i+1])):
				n = 2
				b.WriteByte(text[i+1])
			case n == 1:
				n = 2
			case formulas["symbols"][name] != "":
				b.WriteString(formulas["symbols"][name])
			case formulas["relations"][name] != "":
				b.WriteString(formulas["relations"][name])
			case formulas["functions"][name] != "":
				b.WriteString(name)
			}
			i += n
			continue
		}
		r := []rune(text[i:])[0]
		i += len(string(r))
		if small, ok := back[r]; ok {
			r = small
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		}
	}
	var kept strings.Builder
	for _, r := range b.String() {
		if small, ok := back[r]; ok {
			r = small
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			kept.WriteRune(r)
		}
	}
	return kept.String()
}

// No formula causes a panic or loses a letter or a digit: a converted one has them all in order,
// and another one is unchanged.
func FuzzMath(f *testing.F) {
	for _, s := range []string{`\frac{-b \pm \sqrt{b^2}}{2a}`, `\sum_{i=1}^{n}`, `\sqrt[n]{x}`, `{{}`,
		`\left.`, `\text{a b}`, `x^{y^{z}}`, `\`, `_`, `\mathbb R`, "\xff", `\frac\frac12{3}4`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, latex string) {
		got := Math(latex)
		if got == latex || strings.Contains(latex, `\mathbb`) || strings.Contains(latex, `\sqrt`) {
			return // letters of sets and the roots' signs have characters of their own
		}
		if want, has := essence(latex, true), essence(got, false); want != has {
			t.Fatalf("%q becomes %q: %q is left of %q", latex, got, has, want)
		}
	})
}
