package cpu

import "embed"

// Sources are the C++ files that this package is compiled from, for `ossrun version` to hash.
// Embedding them also tells the go command that they belong to the package.
//
//go:embed *.cpp *.h
var Sources embed.FS
