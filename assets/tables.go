package assets

// The tables for code and formulas of the chat in the terminal and of the chat page in the browser.

import _ "embed"

// Languages describes each language's comments, strings, numbers and words; it documents itself.
//
//go:embed languages.txt
var Languages string

// Formulas maps LaTeX's commands to Unicode's characters; the file has its own documentation.
//
//go:embed formulas.txt
var Formulas string
