// What the tests outside of the package need of those inside.

package responses

type (
	Lease          = lease
	StoredResponse = storedResponse
)

var (
	GetResponse = getResponse
	NewEventLog = newEventLog
	PutResponse = putResponse
)

// RunningOf tells whether a stored response runs.
func RunningOf(s *storedResponse) bool { return s.running() }

// LastOf is the sequence number of the last event of a log.
func LastOf(l *eventLog) int { return l.last() }
