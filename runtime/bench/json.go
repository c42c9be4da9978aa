package bench

import "fmt"

// Flat is the report as one object: what Report holds, and the figures that scripts compare under
// names of their own.
func (r *Report) Flat() map[string]any {
	flat := map[string]any{
		"about": r.About, "load_s": r.LoadS, "load_average": r.LoadAverage,
		"model": r.Model, "layers": r.Layers, "device": r.Device, "compute": r.Compute,
		"dense": r.Dense, "kv": r.KV,
		"weight_bytes": r.Weights, "dense_cache_bytes": r.DenseBytes, "read_gb_s": r.ReadGBs,
		"vnni_tops": r.PeakTOPS, "vnni_unit": r.PeakUnit,
		"start_s": r.StartS, "resident_bytes": r.Resident,
		"prefill": r.Prefill, "decode": r.Decode,
		"prefill_profile": r.PrefillProfile, "decode_profile": r.DecodeProfile,
		"batch_profile": r.BatchProfile,
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
			flat["decode_tok_s"], flat["bytes_per_token"],
				flat["decode_fraction_of_read"] = d.TokensPerS, d.BytesPerStep, d.OfRead
		default:
			flat[fmt.Sprintf("batch%d_tok_s", d.Tokens)] = d.TokensPerS
			flat[fmt.Sprintf("batch%d_fraction_of_read", d.Tokens)] = d.OfRead
		}
	}
	return flat
}
