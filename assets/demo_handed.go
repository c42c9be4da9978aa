//go:build demohanded

package assets

// DemoPack is empty until the program that carries this GPU worker hands its own over: the pack is
// the largest part of both, and one of them is enough.
var DemoPack []byte
