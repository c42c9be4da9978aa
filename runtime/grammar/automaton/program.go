// Package automaton makes masks of tokens from a Program: nodes with alternative spellings of a
// value, made of literals, automata, strings, arrays, objects and sequences.
//
// A pushdown machine executes the program byte by byte (machine.go). Sets of its configurations are
// the states of a lazily built automaton (states.go). A state's mask is found by walking this
// automaton and the trie of all tokens (trie.go) together.
//
// What must stay true: every node is satisfied by a finite value, and none leads back to itself
// before a byte is read. The creator of the program guarantees that.
package automaton

import "unicode/utf8"

// Program is a language before its automaton is made. After New, only its literals change.
type Program struct {
	Any int32 // the node of a value without a schema, or -1

	literals  []string
	numbers   []*DFA
	strings   []*String
	objects   []*Object
	arrays    []*Array
	nodes     [][]Symbol
	sequences [][]Symbol

	literalOf map[string]int32
	unique    bool // there are arrays whose items differ

	numberOf map[*DFA]int32
	stringOf map[*String]int32
}

// NewProgram has no nodes yet.
func NewProgram() *Program {
	return &Program{Any: -1, literalOf: map[string]int32{}, numberOf: map[*DFA]int32{},
		stringOf: map[*String]int32{}}
}

// Symbol is one spelling of a value, or one element of a sequence: the frame that it becomes.
type Symbol struct {
	kind frameKind
	ref  int32
}

// Add adds the next node with its alternatives. Nodes are numbered from 0.
func (p *Program) Add(ways []Symbol) { p.nodes = append(p.nodes, ways) }

// Node refers to the node with a number; it may be added later.
func (p *Program) Node(number int32) Symbol { return Symbol{planValue, number} }

// Literal is a verbatim text.
func (p *Program) Literal(text string) Symbol { return Symbol{readLiteral, p.literal(text)} }

func (p *Program) literal(text string) int32 { return intern(p.literalOf, &p.literals, text) }

// Number is a number in the form of an automaton of Numbers.
func (p *Program) Number(d *DFA) Symbol {
	return Symbol{readDFA, intern(p.numberOf, &p.numbers, d)}
}

// Text is a text outside of JSON's strings.
func (p *Program) Text(d *DFA) Symbol {
	d.markTotal()
	return p.Number(d)
}

func (p *Program) String(s *String) Symbol { return Symbol{readString, p.text(s)} }

func (p *Program) text(s *String) int32 {
	if s.Text != nil { // prepare existing automata for masks
		s.Text.markTotal()
	}
	return intern(p.stringOf, &p.strings, s)
}

func (p *Program) Array(a *Array) Symbol {
	p.arrays = append(p.arrays, a)
	p.unique = p.unique || a.Unique
	return Symbol{planItems, int32(len(p.arrays) - 1)}
}

func (p *Program) Object(o *Object) Symbol {
	for i := range o.Extra {
		o.Extra[i].text = p.text(o.Extra[i].Name)
	}
	o.canHave, o.mustHave = make([]int, len(o.Properties)+1), make([]int, len(o.Properties)+1)
	for i := len(o.Properties) - 1; i >= 0; i-- {
		o.canHave[i], o.mustHave[i] = o.canHave[i+1]+1, o.mustHave[i+1]
		if o.Properties[i].Required {
			o.mustHave[i]++
		}
	}
	p.objects = append(p.objects, o)
	return Symbol{planMembers, int32(len(p.objects) - 1)}
}

func (p *Program) Sequence(elements []Symbol) Symbol {
	p.sequences = append(p.sequences, elements)
	return Symbol{planSequence, int32(len(p.sequences) - 1)}
}

// intern returns the index of v in list, appending it if new. ids are the indices so far.
func intern[T comparable](ids map[T]int32, list *[]T, v T) int32 {
	id, ok := ids[v]
	if !ok {
		id = int32(len(*list))
		ids[v] = id
		*list = append(*list, v)
	}
	return id
}

// String is the allowed content of a JSON string.
type String struct {
	Make     func() *DFA // the automaton of its characters, if Text is not made yet
	Text     *DFA
	Min, Max int // characters; Max -1: no bound
	// if characters are counted next to an automaton (length.go): how many more each state needs,
	// and the maximum of these
	ends  []int32
	slack int
}

// DFA is the automaton of the characters.
func (s *String) DFA() *DFA {
	if s.Text == nil {
		s.Text = s.Make()
		s.Text.markTotal()
	}
	return s.Text
}

func (s *String) Accepts(text string) bool {
	n := utf8.RuneCountInString(text)
	return n >= s.Min && (s.Max < 0 || n <= s.Max) && s.DFA().Accepts(text)
}

// Object is an object with its properties in the order in which they are written.
type Object struct {
	Properties []Property
	Extra      []Extra
	Min, Max   int // members; Max -1: no bound
	// by index: how many properties from there on are possible, and how many are required
	canHave, mustHave []int
}

// Property is a member by its name; Value is the node of its value.
type Property struct {
	Name     string
	Value    int32
	Required bool
	// the literals "name": and ,"name": plus one; 0: not made yet
	spelled [2]int32
}

// Extra is a class of names that are not properties, and the node of their values.
type Extra struct {
	Name  *String
	Value int32
	text  int32 // the number of Name
}

// Array is prefix items, then items; Max -1: no bound. At least Least of the items also match one
// of Matches, which has a node for each of Prefix and one for Items, -1 for none; nil: not
// required.
type Array struct {
	Prefix   []int32
	Items    int32 // -1: none
	Min, Max int
	Matches  []int32
	Least    int
	Unique   bool // its items differ from each other (unique.go)
}

// CanMatch is how many of the items starting at from can match, up to Least.
func (a *Array) CanMatch(from int) (n int) {
	for i := from; n < a.Least && (a.Max < 0 || i < a.Max); i++ {
		if node := a.Matches[min(i, len(a.Prefix))]; node >= 0 {
			n++
		} else if i >= len(a.Prefix) {
			break
		}
	}
	return n
}
