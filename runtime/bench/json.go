package bench

import (
	"fmt"
	"reflect"
)

// Flat is the report as one object: what Report holds, and the figures that scripts compare under
// names of their own.
func (r *Report) Flat() map[string]any {
	flat, fields := map[string]any{}, reflect.ValueOf(*r)
	for i := range fields.NumField() {
		flat[fields.Type().Field(i).Tag.Get("json")] = fields.Field(i).Interface()
	}
	for i, p := range r.Prefill {
		flat[fmt.Sprintf("prefill_%d_tok_s", p.Tokens)] = p.TokensPerS
		if i == 0 {
			flat["prefill_fraction_of_vnni"] = p.OfMultiply
		}
	}
	for _, d := range r.Decode {
		switch {
		case d.Context > 0:
			flat[fmt.Sprintf("decode_at_%d_tok_s", d.Context)] = d.TokensPerS
		case d.Tokens == 1:
			flat["decode_tok_s"], flat["bytes_per_token"] = d.TokensPerS, d.BytesPerStep
			flat["decode_fraction_of_read"] = d.OfRead
		default:
			flat[fmt.Sprintf("batch%d_tok_s", d.Tokens)] = d.TokensPerS
			flat[fmt.Sprintf("batch%d_fraction_of_read", d.Tokens)] = d.OfRead
		}
	}
	return flat
}
