package assets

// The tables by which the chat in the terminal and the chat page, which reads them in the browser,
// lay out code and formulas alike.

import _ "embed"

// Languages is how each language writes comments, strings, numbers and words; it explains itself.
//
//go:embed languages.txt
var Languages string

// Formulas is LaTeX's commands and Unicode's characters; it explains itself.
//
//go:embed formulas.txt
var Formulas string
