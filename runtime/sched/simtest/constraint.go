// A constraint that a test writes down as functions of the generated tokens.

package simtest

// Constraint implements grammar.Constraint.
type Constraint struct {
	First  []int32                          // forced before anything else
	Allow  func(generated []int32) []uint64 // nil: everything
	Follow func(generated []int32) []int32  // nil: nothing is forced

	generated []int32
}

// Again is the constraint of another request of the same kind.
func (c *Constraint) Again() *Constraint {
	return &Constraint{First: c.First, Allow: c.Allow, Follow: c.Follow}
}

func (c *Constraint) Accept(id int32) bool {
	c.generated = append(c.generated, id)
	return true
}

func (c *Constraint) Mask() []uint64 {
	if c.Allow == nil {
		return nil
	}
	return c.Allow(c.generated)
}

func (c *Constraint) Forced() []int32 {
	switch {
	case len(c.generated) == 0 && c.First != nil:
		return c.First
	case c.Follow == nil:
		return nil
	}
	return c.Follow(c.generated)
}
