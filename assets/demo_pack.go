//go:build !demohanded

package assets

import _ "embed"

// DemoPack is model.safetensors in the OSSPACK1 form that package models/pack describes.
//
//go:embed demo/model.safetensors.pack
var DemoPack []byte
