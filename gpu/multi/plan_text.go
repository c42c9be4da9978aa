package multi

import (
	"fmt"
	"strings"
)

// Line is the plan in a line, for people. numbers[i] is the number that people know card i by; with
// nil the cards are numbered as they were given.
func (p Plan) Line(numbers []int) string { return strings.Join(p.Lines(numbers), "; ") }

// Lines are Line in parts: one for each card, then one for what they have together.
func (p Plan) Lines(numbers []int) (lines []string) {
	for _, s := range p.Shares {
		number := s.Card
		if s.Card < len(numbers) {
			number = numbers[s.Card]
		}
		part := fmt.Sprintf("layers %d-%d on GPU %d (%s)", s.From, s.To-1, number, gb(s.Bytes()))
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
