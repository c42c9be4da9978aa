//go:build demohanded

package assets

// DemoPack is empty until the program that carries this worker hands its own over: it is large.
var DemoPack []byte
