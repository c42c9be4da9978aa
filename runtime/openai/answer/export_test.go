// What the tests outside of the package need of those inside.

package answer

const (
	MostItems    = mostItems
	MostMessages = mostMessages
	TooLong      = tooLong
)
