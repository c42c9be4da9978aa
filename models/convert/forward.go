package convert

// What rounding costs in answers: a short text is read by the model with the experts as they were,
// and by the one with the experts as they are written, layer by layer while the layers are made.
// Weights are in memory for as long as they are converted, so the comparison needs no more memory
// than the import, and reads nothing twice.
//
// What must stay true: both computations are gpt-oss's, in float32, and differ in the experts
// only; an import that was stopped goes on with the text where it was.

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/mapping"
)

// text is what is read: a short turn, for each token costs time.
const text = "<|start|>user<|message|>Why?<|end|><|start|>assistant" +
	"<|channel|>final<|message|>Because 12 is even."

// comparison is the text on its way through the layers. Of the pairs, the first is with the experts
// as they were.
type comparison struct {
	spec   models.Spec
	tokens []int32
	read   func(name string, first, count int) ([]float32, error) // what is written already
	next   int                                                    // part that it needs
	first  int                                                    // token with logits
	x      [2][][]float32                                         // the residual stream

	in, out [2][][]float32 // of the experts, a row for each token and choice
	experts [2][]int
	weights [2][]float32
	logits  [2][][]float32
}

// saved is what is kept of a comparison between two runs.
type saved struct {
	Next    int       `json:"next"`
	Streams [2][]byte `json:"streams"`
	KL      *float64  `json:"kl,omitempty"` // at the end
}

func newComparison(s models.Spec, from saved) *comparison {
	c := &comparison{spec: s}
	for _, id := range token.Get().EncodeSpecial(nil, text, nil) {
		c.tokens = append(c.tokens, id%int32(s.Vocab)) // a test's vocabulary is shorter
	}
	c.first = len(c.tokens) / 2 // the answer; logits are the dearest of all
	for i, stream := range from.Streams {
		if len(stream) != 4*len(c.tokens)*s.Hidden || from.Next <= 0 {
			return c
		}
		all := make([]float32, len(c.tokens)*s.Hidden)
		gguf.Floats(all, stream, gguf.F32)
		c.x[i] = slices.Collect(slices.Chunk(all, s.Hidden))
	}
	c.next = from.Next
	return c
}

func (c *comparison) save() (to saved) {
	to.Next = c.next
	if kl := c.divergence(); kl >= 0 { // it is not where weights make no numbers
		to.KL = &kl
	}
	for i, rows := range c.x {
		for _, row := range rows {
			for _, v := range row {
				to.Streams[i] = binary.LittleEndian.AppendUint32(to.Streams[i], math.Float32bits(v))
			}
		}
	}
	return to
}

// stages is into how many stageOf divides a part's tensors: each needs what is computed after the
// one before.
const stages = 3

func stageOf(tensor string) int {
	switch {
	case strings.Contains(tensor, "experts.gate_up_proj"):
		return 1
	case strings.Contains(tensor, "experts.down_proj"):
		return 2
	}
	return 0
}

// after computes what follows from a stage of the next part, whose tensors are written.
func (c *comparison) after(ctx context.Context, p part, stage int) (err error) {
	switch name := p[0].Name; name {
	case "model.embed_tokens.weight":
		for _, id := range c.tokens {
			row, err := c.read(name, int(id), 1)
			if err != nil {
				return err
			}
			c.x[0], c.x[1] = append(c.x[0], row), append(c.x[1], slices.Clone(row))
		}
		return nil
	case "model.norm.weight":
		for which := range c.x {
			c.x[which] = c.x[which][c.first:]
		}
		if c.in, err = c.norm(name); err == nil {
			c.logits, err = c.project(ctx, unembedding, c.in)
		}
		return err
	}
	layer := c.next - 1
	prefix := fmt.Sprintf("model.layers.%d.", layer)
	switch stage {
	case 0:
		if err = c.attend(ctx, prefix, c.spec.Sliding(layer)); err == nil {
			err = c.route(ctx, prefix)
		}
	case 1:
		err = c.activate(prefix + "mlp.experts.gate_up_proj_bias")
	case 2:
		err = c.combine(prefix + "mlp.experts.down_proj_bias")
	}
	return err
}

// multiply is called of many goroutines with each expert's matrix.
func (c *comparison) multiply(which, expert int, matrix []float32) {
	for i, e := range c.experts[which] {
		if e == expert {
			multiply(c.out[which][i], matrix, c.in[which][i])
		}
	}
}

// uses tells whether a model's text needs an expert.
func (c *comparison) uses(which, expert int) bool {
	return slices.Contains(c.experts[which], expert)
}

func multiply(y, matrix, x []float32) {
	for i := range y {
		y[i] += dot(matrix[i*len(x):][:len(x)], x)
	}
}

// dot of two rows of one length, in eight sums that need not wait for each other.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	b = b[:len(a)]
	for len(a) >= 8 && len(b) >= 8 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		s4 += a[4] * b[4]
		s5 += a[5] * b[5]
		s6 += a[6] * b[6]
		s7 += a[7] * b[7]
		a, b = a[8:], b[8:]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
}

func (c *comparison) norm(name string) (to [2][][]float32, err error) {
	scale, err := c.read(name, 0, c.spec.Hidden)
	for which, rows := range c.x {
		for _, row := range rows {
			var square float64
			for _, v := range row {
				square += float64(v) * float64(v)
			}
			by := 1 / math.Sqrt(square/float64(len(row))+float64(c.spec.NormEps))
			y := make([]float32, len(row))
			for i := range min(len(y), len(scale)) {
				y[i] = float32(float64(row[i])*by) * scale[i]
			}
			to[which] = append(to[which], y)
		}
	}
	return to, err
}

// unembedding is the one matrix without a bias.
const unembedding = "lm_head"

// projectRows is how many rows of a matrix are read at once.
const projectRows = 256

// project multiplies rows with a matrix, and adds its bias if it has one.
func (c *comparison) project(ctx context.Context, name string,
	x [2][][]float32) (y [2][][]float32, err error) {
	width := len(x[0][0])
	var bias []float32
	rows := c.rows(name)
	if name != unembedding {
		if bias, err = c.read(name+".bias", 0, rows); err != nil {
			return y, err
		}
	}
	for which := range x {
		for range x[which] {
			row := make([]float32, rows)
			copy(row, bias)
			y[which] = append(y[which], row)
		}
	}
	return y, mapping.Each(ctx, runtime.GOMAXPROCS(0), (rows+projectRows-1)/projectRows,
		new(atomic.Int64), func(i int, _ *[]byte) (int64, error) {
			first := i * projectRows
			count := min(projectRows, rows-first)
			matrix, err := c.read(name+".weight", first, count)
			if err != nil {
				return 0, err
			}
			for which := range x {
				for row := range x[which] {
					multiply(y[which][row][first:][:count], matrix[:count*width], x[which][row])
				}
			}
			return 0, nil
		})
}

// rows is how many rows a matrix has.
func (c *comparison) rows(name string) int {
	s := c.spec
	switch {
	case name == unembedding:
		return s.Vocab
	case strings.HasSuffix(name, "q_proj"):
		return s.Heads * s.HeadDim
	case strings.HasSuffix(name, "k_proj"), strings.HasSuffix(name, "v_proj"):
		return s.KVHeads * s.HeadDim
	case strings.HasSuffix(name, "router"):
		return s.Experts
	}
	return s.Hidden
}

func (c *comparison) attend(ctx context.Context, prefix string, sliding bool) error {
	s := c.spec
	normed, err := c.norm(prefix + "input_layernorm.weight")
	if err != nil {
		return err
	}
	prefix += "self_attn."
	var qkv [3][2][][]float32
	for i, name := range [...]string{"q_proj", "k_proj", "v_proj"} {
		if qkv[i], err = c.project(ctx, prefix+name, normed); err != nil {
			return err
		}
	}
	sinks, err := c.read(prefix+"sinks", 0, s.Heads)
	if err != nil {
		return err
	}
	frequencies, scale := models.Frequencies(s)
	var heads [2][][]float32
	for which := range c.x {
		q, k, v := qkv[0][which], qkv[1][which], qkv[2][which]
		for at := range q {
			rotate(q[at], frequencies, scale, at)
			rotate(k[at], frequencies, scale, at)
			first := 0
			if sliding {
				first = max(0, at+1-s.Window)
			}
			row := make([]float32, len(q[at]))
			for h := range s.Heads {
				of := h / (s.Heads / s.KVHeads) * s.HeadDim
				part := func(row []float32) []float32 { return row[of:][:s.HeadDim] }
				logits := []float64{float64(sinks[h])}
				for j := first; j <= at; j++ {
					logits = append(logits, float64(dot(q[at][h*s.HeadDim:][:s.HeadDim],
						part(k[j])))/math.Sqrt(float64(s.HeadDim)))
				}
				for i, p := range softmax(logits)[1:] {
					for d, value := range part(v[first+i]) {
						row[h*s.HeadDim+d] += float32(p) * value
					}
				}
			}
			heads[which] = append(heads[which], row)
		}
	}
	sum, err := c.project(ctx, prefix+"o_proj", heads)
	for which := range sum {
		for row := range sum[which] {
			addTo(c.x[which][row], sum[which][row], 1)
		}
	}
	return err
}

func addTo(to, x []float32, scale float32) {
	for i, v := range x {
		to[i] += scale * v
	}
}

func softmax(logits []float64) []float64 {
	top, sum := slices.Max(logits), 0.0
	p := make([]float64, len(logits))
	for i, v := range logits {
		p[i] = math.Exp(v - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// rotate turns the pairs of every head by the angles of a position.
func rotate(x, frequencies []float32, scale float32, position int) {
	half := len(frequencies)
	for i, f := range frequencies {
		sin, cos := math.Sincos(float64(float32(position) * f))
		s, c := float32(sin)*scale, float32(cos)*scale
		for h := i; h < len(x); h += 2 * half {
			x[h], x[h+half] = x[h]*c-x[h+half]*s, x[h+half]*c+x[h]*s
		}
	}
}

// route chooses the experts of each token.
func (c *comparison) route(ctx context.Context, prefix string) error {
	normed, err := c.norm(prefix + "post_attention_layernorm.weight")
	if err != nil {
		return err
	}
	scores, err := c.project(ctx, prefix+"mlp.router", normed)
	if err != nil {
		return err
	}
	c.in, c.out, c.experts, c.weights = [2][][]float32{}, [2][][]float32{}, [2][]int{},
		[2][]float32{}
	for which := range scores {
		for row, list := range scores[which] {
			order := make([]int, len(list))
			for i := range order {
				order[i] = i
			}
			slices.SortStableFunc(order,
				func(a, b int) int { return cmp.Compare(list[b], list[a]) })
			var chosen []float64
			for _, e := range order[:c.spec.ExpertsPerToken] {
				chosen = append(chosen, float64(list[e]))
				c.experts[which] = append(c.experts[which], e)
				c.in[which] = append(c.in[which], normed[which][row])
				c.out[which] = append(c.out[which], make([]float32, 2*c.spec.Intermediate))
			}
			for _, p := range softmax(chosen) {
				c.weights[which] = append(c.weights[which], float32(p))
			}
		}
	}
	return nil
}

// biased adds each expert's bias to what it gave.
func (c *comparison) biased(name string) error {
	for which := range c.out {
		for i, e := range c.experts[which] {
			bias, err := c.read(name, e, 1)
			if err != nil {
				return err
			}
			addTo(c.out[which][i], bias, 1)
		}
	}
	return nil
}

// activate makes what the second matrix of each expert reads.
func (c *comparison) activate(bias string) error {
	if err := c.biased(bias); err != nil {
		return err
	}
	limit := float64(c.spec.SwigluLimit)
	for which := range c.out {
		for slot, both := range c.out[which] {
			h := make([]float32, c.spec.Intermediate)
			for i := range h {
				gate := min(float64(both[2*i]), limit)
				up := max(-limit, min(limit, float64(both[2*i+1])))
				h[i] = float32(gate / (1 + math.Exp(-1.702*gate)) * (up + 1))
			}
			c.in[which][slot], c.out[which][slot] = h, make([]float32, c.spec.Hidden)
		}
	}
	return nil
}

// combine adds what the experts of each token gave, as they are weighted.
func (c *comparison) combine(bias string) error {
	if err := c.biased(bias); err != nil {
		return err
	}
	for which := range c.out {
		for slot, y := range c.out[which] {
			addTo(c.x[which][slot/c.spec.ExpertsPerToken], y, c.weights[which][slot])
		}
	}
	return nil
}

// divergence is the mean of KL(as it was || as it is written) over the text, in nats. Before the
// text has been read it is no number.
func (c *comparison) divergence() float64 {
	if c.logits[0] == nil {
		return math.NaN()
	}
	var sum float64
	for row := range c.logits[0] {
		var p [2][]float64
		for which := range p {
			list := make([]float64, len(c.logits[which][row]))
			for i, v := range c.logits[which][row] {
				list[i] = float64(v)
			}
			p[which] = softmax(list)
		}
		for i, was := range p[0] {
			if was > 0 {
				sum += was * math.Log(was/max(p[1][i], math.SmallestNonzeroFloat64))
			}
		}
	}
	return max(sum/float64(len(c.logits[0])), 0)
}
