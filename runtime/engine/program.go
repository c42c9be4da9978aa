package engine

import (
	"cmp"
	"fmt"
	"unsafe"

	"github.com/ossrun/ossrun/models"
)

// The Program: a list of operations over named buffers. It is data, made by forward.go and read by
// devices; nothing in this file computes. Shapes are those of one bucket: Rows is the most rows a
// step of this program may have, the batch says how many are used.

// Type is the element type of a buffer.
type Type uint8

const (
	F32  Type = iota
	BF16      // the upper half of a float32
	I32
	I8
	U8
	I16
)

func (t Type) Size() int64 {
	switch t {
	case F32, I32:
		return 4
	case BF16, I16:
		return 2
	}
	return 1
}

func (t Type) String() string { return [...]string{"f32", "bf16", "i32", "i8", "u8", "i16"}[t] }

// Extent is the kind of a buffer's rows.
type Extent uint8

const (
	Fixed  Extent = iota // as many as Buffer.Rows says: weights, tables
	PerRow               // rows of the batch
	// a row for each expert a row chose: slot row*k+j is the row's j-th choice
	PerSlot
	PerLogit // rows whose logits are wanted
)

// Home is the owner of a buffer's memory.
type Home uint8

const (
	Scratch Home = iota // the engine's arena; holds nothing between steps
	Weight              // the checkpoint's bytes
	Cache               // the KV pool: [pages] of Program.PageBytes()
	Logits              // the caller's result [len(LogitRows), vocab]
)

// Buffer is a matrix [rows, Width], row-major, that operations read or write.
type Buffer struct {
	Name    string
	Type    Type
	Home    Home
	Extent  Extent
	Rows    int // Extent Fixed only
	Width   int
	Adapter int // Home Weight: of Settings.Adapters, counted from 1; 0: the checkpoint's own

	Region Region // its memory; set by the engine before Compile, nil for Logits
	Offset int64
}

// Kind is an operation. Out, In and W below are Op.Out, Op.In and Op.W in order; R rows, L logit
// rows, S = R*k slots, H hidden, D head dim.
type Kind uint8

const (
	Embed  Kind = iota // Out x[R,H]          W embedding[V,H]: x = the tokens' rows
	Angles             // Out a[R,D]          cos then sin of position*Frequencies, times Scale
	Norm               // Out y[n,H] In x[n,H] W w[H]: RMSNorm with Eps; y may be x
	// Out y[n,N] In x[n,K] W (w[Ni,K], bias[Ni] or nil)...: the parts' results in adjacent columns;
	// Add: y += instead of y =
	Linear
	Rope    // Out qkv[R,(heads+2kv)*D] In a: rotates the q and k heads in place
	WriteKV // Out cache           In qkv: k and v of every row into its page
	// Out o[R,heads*D] In qkv, cache W sinks[heads], one for all or of each adapter: softmax over
	// the visible positions and the sink
	Attend
	// Out experts[R,k] weights[R,k] order[S] groups[1+2E] In router[R,E]: top-k, softmax over the
	// chosen; see Groups
	Route
	// Out q[n,K] d[n,K/16] In x[n,K]: 8 bits in blocks of 32; the device chooses their order, the
	// two numbers of a block, and its scale among Caps.Scales. With q i16 and d[n,K/32]: 12 bits,
	// one number
	Quantize
	// Out t[n,K+TilePad] In x[n,K]: rows of prompts as bf16; other rows of t are undefined. With In
	// order[S] too: those of the slots in that order, of x[R,K] or x[S,K]
	Round
	// With Settings.Tiles GateUp, Down, and Linear for q, k, v and o read rows of prompts from t of
	// Round, the last of In, instead of the input before it.
	//
	// Out h[S,I] In order groups, then t[R,H] or q d: both projections, bias, clamped SwiGLU W
	// blocks scales bias
	GateUp
	// Out y[S,H]          In order groups, then h[S,I] or q d  W blocks scales bias
	Down
	// Out x[R,H] In y[S,H] weights[R,k]: x += sum over j of weight j * y j, in that order
	Combine
	Gather // Out y[L,H]          In x[R,H]: the rows whose logits are wanted
	// Out y               In x: a copy that outlives the step, for tests and drafts
	Tap
	// Out y[n,N] In q d W (w[ceil(Ni/8), K/32*272], bias[Ni] or nil)...: Linear on quantised rows;
	// see package models/q8
	LinearQ8
	kinds
)

var kindNames = [kinds]string{"embed", "angles", "norm", "linear", "rope", "write_kv", "attend",
	"route", "quantize", "round", "gate_up", "down", "combine", "gather", "tap", "linear_q8"}

func (k Kind) String() string { return kindNames[k] }

// Op is one line of a program.
//
// Route's groups, in memory: groups[0] = A, the number of experts that were chosen at all; then A
// pairs (expert, end): order[previous end:end] are the slots of that expert, ascending. Experts
// ascend too. GateUp and Down walk the groups, so each expert's weights are read once a step.
type Op struct {
	Kind  Kind
	Label string // its place in the model: "layer3.qkv"
	Layer int    // -1 outside the layers
	Out   []*Buffer
	In    []*Buffer
	W     []*Buffer

	// Split: for the rows of one model only, that of Adapter, which counts like Buffer.Adapter
	Split   bool
	Adapter int

	Add         bool      // Linear, LinearQ8
	Eps         float32   // Norm
	Frequencies []float32 // Angles: [D/2]
	Scale       float32   // Angles: the YaRN factor on cos and sin. Attend: on q·k
	Window      int       // Attend: positions a query sees, itself included; 0: all
	CacheLayer  int       // WriteKV, Attend: which layer of its page
	Twin        bool      // WriteKV, Attend: it is in the page's twin; KVFP8 only
	Limit       float32   // GateUp: the clamp
}

// InPlace tells whether the operation updates its result instead of overwriting it.
func (op *Op) InPlace() bool { return op.Add || op.Kind == Combine || op.Kind == Rope }

// PartRows is how many columns of the result the i-th part of a Linear or LinearQ8 makes.
func (op *Op) PartRows(i int) int {
	if op.Kind == Linear {
		return op.W[2*i].Rows
	}
	if bias := op.W[2*i+1]; bias != nil {
		return bias.Width
	}
	return op.Out[0].Width
}

// Program is the operations of one step of up to Rows rows.
type Program struct {
	Spec     models.Spec
	Settings Settings
	Rows     int
	Ops      []*Op
	Buffers  []*Buffer // every buffer the operations name, once each
	// scratch that is read when this part of a longer program has ended (gpu/multi)
	Keep []*Buffer

	byName    map[string]*Buffer
	recording int // the layer that is recorded, counted from 1; 0: none
}

func NewProgram(s models.Spec, o Settings, rows int) (*Program, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Program{Spec: s, Settings: o, Rows: rows, byName: map[string]*Buffer{}}, nil
}

func (p *Program) Buffer(name string) *Buffer { return p.byName[name] }

// RowsOf is the most rows a buffer has in this program.
func (p *Program) RowsOf(b *Buffer) int {
	return p.RowsIn(b, p.Rows, min(p.Rows, cmp.Or(p.Settings.MaxLogits, p.Rows)))
}

// RowsIn is how many rows of a buffer a step of rows rows uses if logitRows of them have logits.
func (p *Program) RowsIn(b *Buffer, rows, logitRows int) int {
	switch b.Extent {
	case PerRow:
		return rows
	case PerLogit:
		return logitRows
	case PerSlot:
		return rows * p.Spec.ExpertsPerToken
	}
	return b.Rows
}

func (p *Program) BytesOf(b *Buffer) int64 {
	return int64(p.RowsOf(b)) * int64(b.Width) * b.Type.Size()
}

// add registers a buffer, or returns the one of that name.
func (p *Program) add(b Buffer) *Buffer {
	if have := p.byName[b.Name]; have != nil {
		return have
	}
	p.byName[b.Name] = &b
	p.Buffers = append(p.Buffers, &b)
	return &b
}

// Scratch names a buffer of the arena.
func (p *Program) Scratch(name string, t Type, e Extent, width int) *Buffer {
	return p.add(Buffer{Name: name, Type: t, Extent: e, Width: width})
}

// Weight names a tensor of the checkpoint, [rows, width].
func (p *Program) Weight(name string, t Type, rows, width int) *Buffer {
	return p.add(Buffer{Name: name, Type: t, Home: Weight, Rows: rows, Width: width})
}

// KV is the cache pool, one row for each page.
func (p *Program) KV() *Buffer {
	t := p.Settings.kvType()
	return p.add(Buffer{Name: "kv", Type: t, Home: Cache, Rows: p.Settings.Pages,
		Width: int(PageBytes(p.Spec, p.Settings.KVCacheDtype) / t.Size())})
}

func (p *Program) Logits() *Buffer {
	return p.add(Buffer{Name: "logits", Type: F32, Home: Logits, Extent: PerLogit,
		Width: p.Spec.Vocab})
}

func (p *Program) PageBytes() int64 {
	for _, b := range p.Buffers {
		if b.Home == Cache {
			return int64(b.Width) * b.Type.Size()
		}
	}
	return PageBytes(p.Spec, p.Settings.KVCacheDtype)
}

// Check checks the operands against the table above, so that devices may rely on the shapes.
func (p *Program) Check() error {
	for i, op := range p.Ops {
		if err := p.checkOp(op); err != nil {
			return fmt.Errorf("operation %d (%s %s): %w", i, op.Kind, op.Label, err)
		}
	}
	return nil
}

// Numbers and their bytes: the machine's order is that of checkpoints and cards.

// Bytes is the memory of v.
func Bytes[T any](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(size[T]()))
}

// Numbers are those stored in b, which must be aligned for them.
func Numbers[T any](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(size[T]()))
}

func size[T any]() uintptr { return unsafe.Sizeof(*new(T)) }
