// What clients write into system texts for themselves and not for the model. Claude Code begins its
// system text with a header that has another value in every request, so that no two prompts begin
// alike and nothing cached would fit; the model has no use for it.

package session

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony"
)

var billing = regexp.MustCompile(
	`(?im)^[ \t]*x-anthropic-billing-header:(?:[ \t]*[\w.-]+=[^;\s]*;?)*[ \t]*(?:\r?\n)?`)

// withoutBilling takes such headers out of a system text. They stand at the beginning of a line and
// end with their last name=value; what follows stays.
func withoutBilling(text string) string {
	if !strings.Contains(strings.ToLower(text), "x-anthropic-billing-header:") {
		return text
	}
	return billing.ReplaceAllString(text, "")
}

// withoutBillingIn is withoutBilling for a message of the system or the developer; others are the
// user's own words.
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
