// A run's requests over its time, as a page: a line each, its first token and its tokens coloured
// by how long they took, as vLLM's --plot-timeline draws them. The page makes no requests.

package load

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"
)

//go:embed timeline.html
var timelinePage string

var timelineTemplate = template.Must(template.New("").Parse(timelinePage))

// span is a part of a request, in percent of the run.
type span struct {
	Start, Width float64
	Kind         int // 0: before the first token; 1 to 3: tokens below limit 1, limit 2, neither
}

type timelineRow struct {
	Title string
	Spans []span
}

// Timeline writes the page; limits are two times between tokens, in milliseconds.
func Timeline(w io.Writer, outcomes []Outcome, limits []float64) error {
	var begin, end time.Time
	for _, o := range outcomes {
		if begin.IsZero() || !o.Sent.IsZero() && o.Sent.Before(begin) {
			begin = o.Sent
		}
		if last := o.Sent.Add(o.Latency); last.After(end) {
			end = last
		}
	}
	var rows []timelineRow
	percent := 100 / max(end.Sub(begin).Seconds(), 1e-9)
	for i, o := range outcomes {
		if o.Err != nil || o.Sent.IsZero() {
			continue
		}
		row := timelineRow{Title: fmt.Sprintf("request %d: %d + %d tokens, first after %.3f s, "+
			"%.3f s in all", i, o.InputTokens, o.OutputTokens, o.TTFT.Seconds(),
			o.Latency.Seconds())}
		spans := []span{{o.Sent.Sub(begin).Seconds() * percent, o.TTFT.Seconds() * percent, 0}}
		for _, gap := range o.Gaps {
			kind := 1
			for _, limit := range limits {
				if milliseconds(gap) >= limit {
					kind++
				}
			}
			last, width := &spans[len(spans)-1], gap.Seconds()*percent
			if last.Kind == kind {
				last.Width += width
			} else {
				spans = append(spans, span{last.Start + last.Width, width, kind})
			}
		}
		row.Spans = spans
		rows = append(rows, row)
	}
	return timelineTemplate.Execute(w, map[string]any{"Rows": rows, "Low": limits[0],
		"High": limits[1], "Seconds": end.Sub(begin).Seconds()})
}
