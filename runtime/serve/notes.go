package serve

// Settings in a model's own files that ossrun does not follow: chat template, sampling defaults.
// One line each, shown when a model is loaded and in ossrun show.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/sample"
)

func Notes(w checkpoint.ChatDefaults) (notes []string) {
	if differs := harmony.TemplateDiffers(w.Template); len(differs) > 0 {
		notes = append(notes, "Harmony is used in place of its own chat template, which "+
			strings.Join(differs, ", "))
	}
	var generation struct {
		EOS any `json:"eos_token_id"`
	}
	var numbers map[string]json.RawMessage
	// an unreadable config adds nothing here: opening the model refuses it
	if json.Unmarshal(w.Generation, &numbers) != nil ||
		json.Unmarshal(w.Generation, &generation) != nil {
		return notes
	}
	var asks []string
	for _, n := range sample.Numbers {
		var v float64
		if raw, ok := numbers[n.Name]; ok && json.Unmarshal(raw, &v) == nil &&
			!slices.Contains(n.Neutral, v) && !(n.Name == "temperature" && v == 1) {
			asks = append(asks, fmt.Sprintf("%s %v", n.Name, v))
		}
	}
	if len(asks) > 0 {
		notes = append(notes, "its generation config recommends "+strings.Join(asks, ", ")+
			". Requests that set nothing are sampled at temperature 1, top_p 1: send these values "+
			"to use them")
	}
	ends, _ := generation.EOS.([]any)
	if slices.Contains(append(ends, generation.EOS), any(float64(token.End))) {
		notes = append(notes, "its generation config ends turns with <|end|>, which ends a "+
			"message in Harmony: turns end with <|return|> and <|call|>")
	}
	return notes
}
