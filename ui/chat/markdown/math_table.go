// The table of math.go.

package markdown

import "strings"

// pairs reads "name character" pairs.
func pairs(text string) map[string]string {
	table := map[string]string{}
	for f := strings.Fields(text); len(f) > 1; f = f[2:] {
		table[f[0]] = f[1]
	}
	return table
}

// smalls pairs the characters of two texts.
func smalls(from, to string) map[rune]rune {
	table, small := map[rune]rune{}, []rune(to)
	for i, r := range []rune(from) {
		table[r] = small[i]
	}
	return table
}

// mathSymbols stand close to their neighbours.
var mathSymbols = pairs(`
	alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι
	kappa κ lambda λ mu μ nu ν xi ξ omicron ο pi π varpi ϖ rho ρ varrho ϱ sigma σ varsigma ς tau τ
	upsilon υ phi φ varphi φ chi χ psi ψ omega ω
	Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω
	sum ∑ prod ∏ coprod ∐ int ∫ iint ∬ iiint ∭ oint ∮
	infty ∞ partial ∂ nabla ∇ emptyset ∅ varnothing ∅ forall ∀ exists ∃ nexists ∄ neg ¬ lnot ¬
	ldots … dots … cdots ⋯ vdots ⋮ ddots ⋱ circ ∘ prime ′ degree ° angle ∠ triangle △
	langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ lbrace { rbrace } vert | Vert ‖
	hbar ℏ ell ℓ Re ℜ Im ℑ aleph ℵ wp ℘ top ⊤ bot ⊥ blacksquare ■ square □ checkmark ✓
`)

// mathRelations have blanks around them.
var mathRelations = pairs(`
	times × cdot · div ÷ pm ± mp ∓ ast ∗ star ⋆ bullet • oplus ⊕ ominus ⊖ otimes ⊗ odot ⊙
	le ≤ leq ≤ leqslant ≤ ge ≥ geq ≥ geqslant ≥ ne ≠ neq ≠ ll ≪ gg ≫ approx ≈ equiv ≡ sim ∼
	simeq ≃ cong ≅ propto ∝ mid | parallel ∥ perp ⊥
	to → rightarrow → longrightarrow → gets ← leftarrow ← leftrightarrow ↔ mapsto ↦
	Rightarrow ⇒ Leftarrow ⇐ Leftrightarrow ⇔ implies ⇒ iff ⇔ uparrow ↑ downarrow ↓
	in ∈ notin ∉ ni ∋ subset ⊂ subseteq ⊆ supset ⊃ supseteq ⊇ cup ∪ cap ∩ setminus ∖
	land ∧ wedge ∧ lor ∨ vee ∨ vdash ⊢ models ⊨ therefore ∴ because ∵
`)

// mathWords are functions that are called by their name.
const mathWords = " sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh coth log ln lg " +
	"exp lim limsup liminf max min sup inf det dim ker gcd deg arg hom Pr mod "

// mathBoards are the letters of sets.
var mathBoards = pairs("N ℕ Z ℤ Q ℚ R ℝ C ℂ P ℙ H ℍ E 𝔼 F 𝔽 K 𝕂 1 𝟙")

// Small characters above and below the line.
var (
	mathUp = smalls("0123456789+-=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWαβγδθφχ",
		"⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵅᵝᵞᵟᶿᵠᵡ")
	mathDown = smalls("0123456789+-=()aehijklmnoprstuvxβγρφχ",
		"₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ")
)
