package draft

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// best is the longest match of a text's end and the tokens after it, by looking at every position.
func best(text []int32) (match int) {
	for at := gram; at < len(text); at++ {
		n := 0
		for n < min(at, longest) && text[at-1-n] == text[len(text)-1-n] {
			n++
		}
		match = max(match, n)
	}
	return match
}

// A proposal is what followed a place where the text's end has stood, and no shorter than any other
// while few places are to be looked at.
func TestIndexFindsTheLongestMatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	found, short := 0, 0
	for range 60 {
		letters := 2 + rng.IntN(30)
		x := NewIndex(nil)
		var text []int32
		for len(text) < 400 {
			if n := len(text); n > 20 && rng.IntN(4) == 0 { // quotes itself
				at := rng.IntN(n - 10)
				text = append(text, text[at:at+rng.IntN(n-at)/4]...)
			}
			text = append(text, int32(rng.IntN(letters)))
			x.Add(text)
			p := x.Propose(nil, 12)
			want := best(text)
			if p.Match == 0 && want < gram {
				continue
			}
			found++
			if p.Match < want {
				short++
			}
			if p.Match < gram || p.Match > want || len(p.Tokens) != 12 || p.Predicted {
				t.Fatalf("%v of %v, the longest match is %d", p, text, want)
			}
			whole := append(slices.Clone(text), p.Tokens...)
			ok := false
			for at := p.Match; at < len(text) && !ok; at++ {
				ok = slices.Equal(text[at-p.Match:at], text[len(text)-p.Match:]) &&
					slices.Equal(whole[at:at+12], p.Tokens)
			}
			if !ok {
				t.Fatalf("%v stands nowhere in %v", p, text)
			}
		}
	}
	if found < 1000 || short > found/5 {
		t.Fatalf("%d proposals, %d of them not of the longest match", found, short)
	}
}

func TestIndexOfAPrediction(t *testing.T) {
	x := NewIndex([]int32{1, 2, 3, 50, 51, 52})
	text := []int32{1, 2, 3, 60, 61, 62, 9, 1, 2, 3}
	x.Add(text)
	p := x.Propose(nil, 8)
	if !p.Predicted || p.Match != 3 || !slices.Equal(p.Tokens, []int32{50, 51, 52}) {
		t.Fatalf("%+v", p)
	}
	x.Add(append(text, 60, 61)) // differs from the prediction
	if p := x.Propose(nil, 2); p.Predicted || !slices.Equal(p.Tokens, []int32{62, 9}) {
		t.Fatalf("%+v", p)
	}
	x.Add(append(text, 60, 61, 50, 51, 52))
	if p := x.Propose(nil, 2); len(p.Tokens) > 0 {
		t.Fatalf("behind the end of the prediction: %+v", p)
	}
	if p := NewIndex(nil).Propose(nil, 8); len(p.Tokens) > 0 {
		t.Fatalf("%+v of nothing", p)
	}
}

// Work is bounded where every place looks like every other.
func TestIndexOfARepetition(t *testing.T) {
	x := NewIndex(nil)
	text := make([]int32, 1<<17)
	for n := 1; n <= len(text); n += 1 + n/1000 {
		x.Add(text[:n])
		if p := x.Propose(nil, Most); n > gram && (len(p.Tokens) != Most || p.Tokens[9] != 0) {
			t.Fatalf("%d tokens: %+v", n, p)
		}
	}
	if bytes := 4 * (cap(x.text) + cap(x.prev) + cap(x.head)); bytes > 40*len(text) {
		t.Errorf("%d bytes for %d tokens", bytes, len(text))
	}
}

// machine is what a step takes: a first row, and rows that share some of what it reads.
type machine struct{ first, more, shared float64 }

func (m machine) step(rows int) time.Duration {
	s := m.first + m.more*math.Pow(float64(rows-1), m.shared)
	return time.Duration(s * float64(time.Second))
}

// machines are a dense one, where rows are nearly free, experts read by one core or by many, and
// one where a row costs what a step does.
var machines = []machine{{0.05, 0.001, 1}, {0.047, 0.03, 0.8}, {0.1, 0.02, 1}, {0.05, 0.05, 1},
	{0.0005, 0.0004, 0.9}}

// play generates tokens on a machine with seqs sequences; guess are the tokens proposed after so
// many tokens of one and how much of it is right.
func play(m machine, seqs, tokens int, guess func(at int) (p Proposal, right int)) (took,
	without time.Duration) {
	var g Gate
	fares, at := make([]Record, seqs), make([]int, seqs)
	for total := 0; total < tokens; {
		type try struct {
			seq, match, n, right, rows int
			tokens                     float64
		}
		rows, expected := seqs, float64(seqs)
		var tries []try
		for i := range seqs {
			p, right := guess(at[i])
			n, more := g.Worth(p, &fares[i], rows, expected)
			if n > 0 {
				tries = append(tries, try{i, p.Match, n, min(n, right), rows, expected})
			}
			rows, expected = rows+n, expected+more
			at[i]++
		}
		step := m.step(rows)
		took += step
		g.Observe(rows, step, true)
		total += seqs
		for _, x := range tries {
			g.Settle(x.match, x.n, x.right, x.rows, x.tokens, &fares[x.seq])
			total += x.right
			at[x.seq] += x.right
		}
	}
	return took, m.step(seqs) * time.Duration(tokens/seqs)
}

// Drafts that are never right cost at most 3 %, however good they look.
func TestGateLosesLittle(t *testing.T) {
	for _, m := range machines {
		for _, seqs := range []int{1, 8} {
			for _, match := range []int{3, 8, 64} {
				took, without := play(m, seqs, 600*seqs, func(int) (Proposal, int) {
					return Proposal{Tokens: make([]int32, Most), Match: match}, 0
				})
				if lost := took.Seconds()/without.Seconds() - 1; lost > 0.03 {
					t.Errorf("%+v, %d sequences, matches of %d: %.1f %% are lost", m, seqs, match,
						100*lost)
				}
			}
		}
	}
}

// Where nine tokens of ten are quoted, drafts are tried and pay; where rows cost as much as steps
// they are let be.
func TestGateTriesWhatPays(t *testing.T) {
	for i, floors := range [][2]float64{{5, 3.5}, {1.8, 1.4}, {2.4, 1.4}, {0.97, 0.97}, {1.2, 1}} {
		for j, seqs := range []int{1, 4} {
			rng := rand.New(rand.NewPCG(3, 3))
			quotes := func(at int) (p Proposal, right int) {
				p.Tokens = make([]int32, Most)
				switch at %= 100; {
				case at < gram || at >= 90 && rng.IntN(3) > 0:
					p.Tokens = nil
				case at >= 90: // something like it has stood somewhere
					p.Match = gram
				default:
					p.Match, right = at, 90-at
				}
				return p, right
			}
			took, without := play(machines[i], seqs, 2000*seqs, quotes)
			if times := without.Seconds() / took.Seconds(); times < floors[j] {
				t.Errorf("%+v, %d sequences: %.2f times as fast, want %.2f", machines[i], seqs,
					times, floors[j])
			} else {
				t.Logf("%+v, %d sequences: %.2f times as fast", machines[i], seqs, times)
			}
		}
	}
}

// A slow step of the system's does not make rows look dear, and no draft is tried before a step is
// known.
func TestGateIsNotMisled(t *testing.T) {
	var g Gate
	var f Record
	p := Proposal{Tokens: make([]int32, Most), Match: 64}
	if n, _ := g.Worth(p, &f, 1, 1); n != 0 || g.Costs(9) != 0 {
		t.Fatalf("%d tokens on an unknown machine", n)
	}
	for range 20 {
		g.Observe(1, 50*time.Millisecond, true)
		g.Observe(9, 60*time.Millisecond, true)
	}
	before := g.Costs(9)
	g.Observe(9, 10*time.Second, true)
	if after := g.Costs(9); after > 1.5*before {
		t.Fatalf("a row costs %g after one slow step, %g before", after, before)
	}
	if n, more := g.Worth(p, &f, 1, 1); n < 8 || more < 5 {
		t.Fatalf("%d tokens, %g expected", n, more)
	}
	if n, _ := g.Worth(Proposal{}, &f, 1, 1); n != 0 {
		t.Fatalf("%d tokens of no proposal", n)
	}
	// the first step of its kind was slow: it is tried again after a while
	g = Gate{}
	g.Observe(1, 50*time.Millisecond, true)
	for _, rows := range []int{5, 9, 13, 17, 25, 33} {
		g.Observe(rows, 2*time.Second, true)
	}
	if n, _ := g.Worth(p, &f, 1, 1); n != 0 {
		t.Fatalf("%d tokens where they look dear", n)
	}
	for range 1500 {
		g.Observe(1, 50*time.Millisecond, true)
	}
	if n, _ := g.Worth(p, &f, 1, 1); n == 0 {
		t.Fatalf("no draft after a slow step, a row costs %g", g.Costs(9)-g.Costs(1))
	}
}
