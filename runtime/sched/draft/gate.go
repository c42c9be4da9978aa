// When a draft is tried. Two things are learned while the engine runs: how long a step of so many
// rows takes on this machine, and how often drafts after a match of such a length were right, of
// each sequence and of all.
//
// What must stay true:
//   - Drafts that are never right cost 1 % of the time and a few steps at the beginning, whatever
//     was expected: their losses are paid from an account that only time and right drafts fill.
//   - The text does not depend on any of it.

package draft

import (
	"math"
	"time"
)

const (
	share = 0.01 // of the time that drafts may lose
	// steps of one row: the account at first, and the most that good drafts save up for worse ones
	loan, saved = 2, 40
	// a draft is tried if it promises so much more tokens a second
	minGain = 1.1
	// weight of the latest step in a mean, if it was slower and if it was faster: other work on the
	// machine only makes steps slower
	slower, faster = 0.15, 0.4
	// how far a mean above the guess moves to the guess with each step of fewer rows: else one slow
	// step would be the last of its kind
	stale = 0.002
)

// lengths are the possible lengths of a draft.
var lengths = [...]int{4, 8, 12, 16, 24, 32}

const Most = 32

// Gate belongs to one engine and one goroutine.
type Gate struct {
	costs   [16]cost // by the logarithm of the rows
	account float64  // seconds that drafts may still lose
	opened  bool     // the loan is on the account
	dearer  float64  // time of the last step, relative to the expected time
	record  Record
}

// cost is the time of steps of about so many rows: running means of both.
type cost struct{ rows, seconds float64 }

// Record is how drafts have done lately. The zero value knows nothing.
type Record [kinds]struct{ right, wrong float64 }

// kinds of matches, by length, and the prior of each: the chance that the next token is right.
const kinds = 3

var prior = [kinds]float64{0.6, 0.8, 0.93}

func kind(match int) int {
	switch {
	case match < 6:
		return 0
	case match < 16:
		return 1
	}
	return 2
}

func bucket(rows int) int {
	// half octaves would tell more, but are met less often
	return min(int(math.Round(math.Log2(float64(max(1, rows))))), len(Gate{}.costs)-1)
}

// Observe takes the time of a step. decode tells that its rows were those of sequences that decode,
// and drafts.
func (g *Gate) Observe(rows int, took time.Duration, decode bool) {
	s := took.Seconds()
	c := &g.costs[bucket(rows)]
	if c.rows == 0 {
		*c = cost{float64(rows), s}
	} else {
		fresh := faster
		if s > c.seconds {
			s, fresh = min(s, 3*c.seconds), slower
		}
		c.rows += fresh * (float64(rows) - c.rows)
		c.seconds += fresh * (s - c.seconds)
	}
	for i := bucket(rows) + 1; i < len(g.costs); i++ {
		if larger := &g.costs[i]; larger.rows > c.rows {
			larger.seconds -= stale * max(0, larger.seconds-c.guess(larger.rows))
		}
	}
	if decode {
		g.account += share * s
	}
	if g.dearer = 1; s > 0 {
		g.dearer = s / g.Costs(rows)
	}
}

// Costs is the seconds that a step of so many rows takes, 0 while no step had so few.
func (g *Gate) Costs(rows int) float64 {
	r := float64(rows)
	var below, above *cost
	for i := range g.costs {
		switch c := &g.costs[i]; {
		case c.rows == 0:
		case c.rows <= r:
			below = c
		case above == nil:
			above = c
		}
	}
	if below == nil {
		return 0
	}
	if above == nil {
		return below.guess(r)
	}
	return below.seconds + (r-below.rows)*max(0, above.seconds-below.seconds)/
		(above.rows-below.rows)
}

// guess is the expected time of more rows.
func (c *cost) guess(rows float64) float64 {
	return c.seconds * (1 + guessPerRow*(rows/c.rows-1))
}

// guessPerRow is the expected time of one more row, as a part of the time of each so far, while no
// step had so many.
const guessPerRow = 0.4

// Worth is how many tokens of a proposal are to be tried in a step that has rows rows and gives
// tokens tokens without them; 0: none.
func (g *Gate) Worth(p Proposal, record *Record, rows int, tokens float64) (n int, extra float64) {
	now := g.Costs(rows)
	if now == 0 {
		return 0, 0
	}
	if !g.opened {
		g.opened = true
		g.account += loan * now
	}
	chance := g.chance(p.Match, record)
	best := minGain * tokens / now
	for _, k := range lengths {
		if k = min(k, len(p.Tokens)); k == 0 {
			break
		}
		with := g.Costs(rows + k)
		gain := chance * (1 - math.Pow(chance, float64(k))) / (1 - chance)
		if rate := (tokens + gain) / with; rate > best && with-now <= g.account {
			best, n, extra = rate, k, gain
		}
	}
	if n == 0 {
		record.fade(kind(p.Match), declined)
	}
	return n, extra
}

// chance is that of one more token to be right.
func (g *Gate) chance(match int, record *Record) float64 {
	const all, one = 16, 6 // tokens that a prior counts for
	k := kind(match)
	c := (prior[k]*all + g.record[k].right) / (all + g.record[k].right + g.record[k].wrong)
	c = (c*one + record[k].right) / (one + record[k].right + record[k].wrong)
	return min(c, 0.99)
}

// How much an earlier draft still counts after another one, and after one that was not tried: a
// sequence whose drafts were wrong gets another try.
const (
	retryWeight = 0.8
	declined    = 0.95
)

func (f *Record) fade(kind int, factor float64) {
	f[kind].right *= factor
	f[kind].wrong *= factor
}

// Settle tells how a draft of the step observed last did: right of its n tokens were. rows and
// tokens are those of the step without it.
func (g *Gate) Settle(match, n, right, rows int, tokens float64, record *Record) {
	k, wrong := kind(match), 0.0
	if right < n {
		wrong = 1
	}
	record.fade(k, retryWeight)
	g.record.fade(k, declined)
	for _, f := range []*Record{record, &g.record} {
		f[k].right += float64(right)
		f[k].wrong += wrong
	}
	now := g.Costs(rows)
	g.account -= g.Costs(rows+n)*g.dearer - now
	g.account += float64(right) * now / max(tokens, 1)
	g.account = min(g.account, saved*now)
}
