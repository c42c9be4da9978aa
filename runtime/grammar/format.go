// The formats of JSON Schema that are held, as regular expressions. Each is at most as wide as its
// standard; where it is narrower docs/json-schema.md says so. A format that is not here is an
// annotation, as the standard has it.

package grammar

import "context"

const (
	hexadecimal = `[0-9a-fA-F]`
	octet       = `(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`
	ipv4        = octet + `(\.` + octet + `){3}`
	group       = hexadecimal + `{1,4}`
	leapYear    = `(([0-9][0-9](0[48]|[2468][048]|[13579][26]))|(0[48]|[2468][048]|[13579][26])00)`
	anyYear     = `([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)`
	fullDate    = `(` + anyYear +
		`-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|` +
		`02-(0[1-9]|1[0-9]|2[0-8]))|` + leapYear + `-02-29)`
	hourMinute = `([01][0-9]|2[0-3]):[0-5][0-9]`
	fullTime   = `(` + hourMinute + `:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]` + hourMinute +
		`)|23:59:60(\.[0-9]+)?([Zz]|[+-]00:00))`
	// a label of a host name has no -- at its third place, where it would be the encoding of
	// another name
	letter    = `[a-zA-Z0-9]`
	inLabel   = `[a-zA-Z0-9\-]`
	labelHead = `(` + letter + `|` + letter + `{2}|` + letter + inLabel + `{1,2}` + letter + `|` +
		letter + inLabel + `(` + letter + inLabel + `|-` + letter + `)`
	longLabel  = labelHead + inLabel + `{0,58}` + letter + `)`
	shortLabel = labelHead + inLabel + `{0,25}` + letter + `)`
	// at most 253 characters
	hostname = `(` + longLabel + `(\.` + longLabel + `){0,2}|` + shortLabel + `(\.` + shortLabel +
		`){3,7})`
	atom       = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~\\-]+"
	unreserved = `[a-zA-Z0-9\-._~!$&'()*+,;=:@/]|%` + hexadecimal + `{2}`
	// after the path: a query and a fragment
	uriTail = `(\?(` + unreserved + `|\?)*)?(#(` + unreserved + `|\?)*)?`
	// with an authority, or without one and a path that does not begin with //
	uriHost = `(([a-zA-Z0-9\-._~!$&'()*+,;=:]|%` + hexadecimal + `{2})*@)?` +
		`(([a-zA-Z0-9\-._~]|%` + hexadecimal + `{2})+|\[` + ipv6 + `\])(:[0-9]{1,5})?`
	uri = `[a-zA-Z][a-zA-Z0-9+\-.]*:(//` + uriHost + `(/(` + unreserved + `)*)?|` +
		`/?([a-zA-Z0-9\-._~!$&'()*+,;=:@]|%` + hexadecimal + `{2})(` + unreserved + `)*)` + uriTail
)

// ipv6 is eight groups, of which :: stands for one or more; the last two may be an IPv4 address.
const ipv6 = `((` + group + `:){7}` + group +
	`|(` + group + `:){6}` + ipv4 +
	`|(` + group + `:){1,7}:` +
	`|(` + group + `:){1,6}:` + group +
	`|(` + group + `:){1,5}(:` + group + `){2}` +
	`|(` + group + `:){1,4}(:` + group + `){3}` +
	`|(` + group + `:){1,3}(:` + group + `){4}` +
	`|(` + group + `:){1,2}(:` + group + `){5}` +
	`|` + group + `:(:` + group + `){6}` +
	`|:((:` + group + `){1,7}|:)` +
	`|((` + group + `:){1,5}|:):` + ipv4 +
	`|:(:` + group + `){1,5}:` + ipv4 +
	`|(` + group + `:){1,4}:` + group + `:` + ipv4 +
	`|(` + group + `:){1,3}(:` + group + `){2}:` + ipv4 +
	`|(` + group + `:){1,2}(:` + group + `){3}:` + ipv4 +
	`|` + group + `:(:` + group + `){4}:` + ipv4 + `)`

// formats are matched as a whole.
var formats = map[string]string{
	"date":      fullDate,
	"time":      fullTime,
	"date-time": fullDate + `[Tt]` + fullTime,
	"duration": `P(([0-9]+W)|(([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)` +
		`(T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S))?)|` +
		`T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S))`,
	"email":    atom + `(\.` + atom + `)*@(` + hostname + `)`,
	"hostname": hostname,
	"ipv4":     ipv4,
	"ipv6":     ipv6,
	"uuid": hexadecimal + `{8}-` + hexadecimal + `{4}-` + hexadecimal + `{4}-` + hexadecimal +
		`{4}-` +
		hexadecimal + `{12}`,
	"uri":          uri,
	"json-pointer": `(/([^~/]|~[01])*)*`,
}

// patterns keeps the automata of expressions: the same few stand in many schemas.
var patterns = cache[patternKey, *dfa]{most: keptAutomata}

type patternKey struct {
	expression string
	search     bool
}

// pattern is patternDFA from the cache.
func pattern(ctx context.Context, expression string, search bool) (*dfa, error) {
	return patterns.get(patternKey{expression, search},
		func() (*dfa, error) { return patternWithin(ctx, expression, search) })
}
