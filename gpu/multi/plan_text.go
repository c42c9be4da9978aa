package multi

import "fmt"

// A plan, or the reason for having none, as text for people.

// Lines are the plan for people: a line for each card, then one for their sum.
func (p Plan) Lines() (lines []string) {
	for _, s := range p.Shares {
		part := fmt.Sprintf("layers %d-%d on GPU %d (%s)", s.From, s.To-1, s.Number, gb(s.Bytes()))
		if n := len(s.CPUExperts); n > 0 {
			part += fmt.Sprintf(", experts of %d of them on the CPU", n)
		}
		if s.Staging > 0 {
			part += ", streamed for long prompts"
		}
		lines = append(lines, part)
	}
	line := fmt.Sprintf("context %d", p.Context)
	if p.HostUsed > 0 {
		line += fmt.Sprintf("; %s of host memory", gb(p.HostUsed))
	}
	if p.Ceiling > 0 {
		line += fmt.Sprintf("; at most %.0f tokens/s by the memories' speed", p.Ceiling)
	}
	return append(lines, line)
}

// NoRoom is the error of a model that cannot be placed, in figures that a person can act on.
type NoRoom struct {
	Model string
	// bytes on the cards: of the model, or of all but the experts if the host could hold those
	Need, Have   int64
	Cards        int
	Largest      int64 // bytes of Have on the card with most
	Steps        int64 // bytes that steps take on each card
	HostNeed     int64 // bytes of experts to be held in host memory; 0: they cannot
	HostHave     int64
	AskedContext int // tokens; 0: the least useful context
}

func (e *NoRoom) Error() string {
	s := fmt.Sprintf("%s does not fit: it needs %s on the GPU", e.Model, gb(e.Need))
	if e.HostNeed > 0 && e.HostNeed <= e.HostHave {
		s += ", even with all of its experts in the host's memory,"
	}
	s += fmt.Sprintf(" and %s is there", gb(e.Have))
	if e.Need <= e.Have && e.Cards > 1 {
		s += fmt.Sprintf(", on %d GPUs with %s at most, where steps take %s of each", e.Cards,
			gb(e.Largest), gb(e.Steps))
	}
	if e.HostNeed > e.HostHave {
		s += fmt.Sprintf("; %s of its experts would go to the host's memory, which has %s",
			gb(e.HostNeed), gb(e.HostHave))
	}
	if e.AskedContext > 0 {
		s += fmt.Sprintf("; a context below %d tokens needs less (--max-model-len)", e.AskedContext)
	}
	return s
}

func gb(n int64) string { return fmt.Sprintf("%.1f GB", float64(max(n, 0))/1e9) }

// noRoom is the error of a context that does not fit with hostNeed bytes of experts on the host.
func (z *planner) noRoom(context int, hostNeed int64) *NoRoom {
	e := &NoRoom{Model: z.spec.Name, Cards: len(z.cards), Steps: z.scratch, HostNeed: hostNeed,
		HostHave: z.host.Free}
	e.Need = z.embedding + z.unembedding + z.scratch + z.choosing +
		z.pool(z.pages(context), 0, z.spec.Layers)
	withHost := hostNeed > 0 && hostNeed <= z.host.Free
	for i := range z.dense {
		e.Need += z.dense[i]
		if !withHost {
			e.Need += z.experts[i]
		}
	}
	for _, c := range z.cards {
		r := room(c, z.o)
		e.Have, e.Largest = e.Have+r, max(e.Largest, r)
	}
	if context > shortest {
		e.AskedContext = context
	}
	return e
}
