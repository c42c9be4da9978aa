// Removes headers that clients put into system texts and that are not meant for the model. Claude
// Code begins its system text with a header whose value differs in every request. With it no two
// prompts would begin alike, and the prefix cache would never find anything.

package session

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony"
)

var billing = regexp.MustCompile(
	`(?im)^[ \t]*x-anthropic-billing-header:(?:[ \t]*[\w.-]+=[^;\s]*;?)*[ \t]*(?:\r?\n)?`)

// withoutBilling removes such headers from a system text. A header starts at the beginning of a
// line and ends with its last name=value; the text after it stays.
func withoutBilling(text string) string {
	if !strings.Contains(strings.ToLower(text), "x-anthropic-billing-header:") {
		return text
	}
	return billing.ReplaceAllString(text, "")
}

// withoutBillingIn is withoutBilling for a system or developer message. Other messages are returned
// unchanged.
func withoutBillingIn(m harmony.Message) harmony.Message {
	if m.Role != harmony.RoleSystem && m.Role != harmony.RoleDeveloper {
		return m
	}
	m.Content = slices.Clone(m.Content)
	for i := range m.Content {
		c := &m.Content[i]
		c.Text = withoutBilling(c.Text)
		if c.Developer != nil && c.Developer.Instructions != nil {
			d, text := *c.Developer, withoutBilling(*c.Developer.Instructions)
			d.Instructions, c.Developer = &text, &d
		}
	}
	return m
}
