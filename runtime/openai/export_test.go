// What the tests outside of the package need of those inside.

package openai

// NewChecked is newChecked.
var NewChecked = newChecked
