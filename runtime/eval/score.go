// What attempts come to.

package eval

import (
	"math"
	"slices"
)

// Score is of one effort.
type Score struct {
	Effort    string  `json:"effort"`
	Questions int     `json:"questions"`
	Attempts  int     `json:"attempts"` // with a reply
	Correct   int     `json:"correct"`
	Failed    int     `json:"failed"`    // without one: they are in no figure
	NoAnswer  int     `json:"no_answer"` // replies in which none was found: they count as wrong
	Percent   float64 `json:"percent"`
	// HalfWidth is half of the 95 % confidence interval, in percent points: 1.96 standard errors of
	// the mean over the questions, since attempts at one question are not independent
	HalfWidth float64 `json:"half_width"`
	// means of a reply
	OutputTokens    float64 `json:"mean_output_tokens"`
	ReasoningTokens float64 `json:"mean_reasoning_tokens"`
	Seconds         float64 `json:"mean_seconds"`
}

// Scores are those of the efforts, in their order.
func Scores(efforts []string, attempts []Attempt) []Score {
	var list []Score
	for _, effort := range efforts {
		list = append(list, score(effort, attempts))
	}
	return list
}

func score(effort string, attempts []Attempt) Score {
	s := Score{Effort: effort}
	right, asked := map[string]float64{}, map[string]float64{}
	for _, a := range attempts {
		if a.Effort != effort {
			continue
		}
		if a.Error != "" {
			s.Failed++
			continue
		}
		s.Attempts++
		s.Correct += one(a.Correct)
		s.NoAnswer += one(a.Given == "")
		s.OutputTokens += float64(a.OutputTokens)
		s.ReasoningTokens += float64(a.ReasoningTokens)
		s.Seconds += a.Seconds
		asked[a.Question]++
		right[a.Question] += float64(one(a.Correct))
	}
	s.Questions = len(asked)
	if s.Attempts == 0 {
		return s
	}
	n := float64(s.Attempts)
	s.OutputTokens /= n
	s.ReasoningTokens /= n
	s.Seconds /= n
	var means []float64
	for q := range asked {
		means = append(means, 100*right[q]/asked[q])
	}
	slices.Sort(means) // so that the sums are the same whatever the map's order
	s.Percent = 100 * float64(s.Correct) / n
	s.HalfWidth = 1.96 * standardError(means)
	return s
}

func standardError(values []float64) float64 {
	n := float64(len(values))
	if n < 2 {
		return 0
	}
	mean, squares := 0.0, 0.0
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares / (n - 1) / n)
}

// published are the scores of the gpt-oss guide for vLLM, without tools, in percent.
var published = map[string]map[string]map[string]float64{
	"120b": {GPQA: {"low": 65.3, "medium": 72.4, "high": 79.4},
		AIME25: {"low": 51.2, "medium": 79.6, "high": 93.0}},
	"20b": {GPQA: {"low": 56.8, "medium": 67.5, "high": 70.9},
		AIME25: {"low": 38.8, "medium": 75.0, "high": 85.8}},
}

// Published is the score of the gpt-oss guide for a model (20b, 120b).
func Published(model, eval, effort string) (percent float64, ok bool) {
	percent, ok = published[model][eval][effort]
	return percent, ok
}
