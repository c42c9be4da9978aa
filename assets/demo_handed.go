//go:build demohanded

package assets

// DemoPack is empty until the parent program sends its own to this worker, because it is large.
var DemoPack []byte
