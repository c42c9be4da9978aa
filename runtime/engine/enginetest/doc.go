// Package enginetest is the one conformance suite that every Device must pass.
//
//   - Ops: each operation alone, on small ragged shapes and on the published width, against plain
//     float64 loops (reference.go).
//   - Programs: whole models, against the goldens and against themselves: a sequence must not
//     notice its batch, its chunks or its pages.
//
// Nothing here imports testing: a device's own tests run the checks as subtests, and `ossrun doctor
// --selftest` runs Ops on the machine it is on. Memory is filled with NaN before anything runs, so
// that what is read without having been written shows.
package enginetest
