// Package golden compares a device with the numbers that a reference implementation computed on a
// tiny random checkpoint.
//
// A golden folder has checkpoint/ (a model in the published layout) and golden/ (cases.json and
// logits.safetensors: for several prompts, the logits at some positions and 48 greedily chosen
// tokens). Options.Run feeds each prompt to each compute mode and judges what comes back by that
// mode's bounds. The golden file itself is judged too, by exact arithmetic on this device whatever
// the mode, so a damaged golden cannot pass because a mode is allowed to be inexact.
package golden
