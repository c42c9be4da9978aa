// What the tests outside of the package need of those inside.

package fields

const (
	MostItems    = maxItems
	MostMessages = maxMessages
	TooLong      = codeTooLong
)
