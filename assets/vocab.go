// Package assets holds the data that the binary embeds, so that nothing is downloaded or installed.
//
// This file has the o200k_harmony vocabulary. What must stay true: Merges expands to the published
// o200k_base ranks byte for byte (package harmony/token compares the hash in its tests). Classes is
// Unicode 16.0.0, the version of the models' tokenizer, independent of Go's own tables.
package assets

import _ "embed"

// Merges is the vocabulary as gzip: 256 bytes, the single-byte tokens in rank order, then for each
// of the other 199,742 ordinary tokens the ranks of the two tokens it is merged from, as six byte
// planes (left low, mid, high; right low, mid, high).
//
//go:embed vocab/merges.bin.gz
var Merges []byte

// Classes is the character class of every code point that the split pattern of o200k tells apart:
// unsigned varints, each a run of code points, run length << 3 | class. The classes are 0 other, 1
// upper and title case letter, 2 lower case letter, 3 modifier and other letter, 4 mark, 5 number,
// 6 white space.
//
//go:embed vocab/classes.bin
var Classes []byte
