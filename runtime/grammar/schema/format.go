// The enforced formats of JSON Schema, as regular expressions. None accepts more than its standard;
// docs/json-schema.md lists those that accept less. Any other format is an annotation, as in the
// standard.

package schema

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
	// a host name's label has no -- at its third position: that marks the encoding of another name
	letter    = `[a-zA-Z0-9]`
	inLabel   = `[a-zA-Z0-9\-]`
	labelHead = `(` + letter + `|` + letter + `{2}|` + letter + inLabel + `{1,2}` + letter + `|` +
		letter + inLabel + `(` + letter + inLabel + `|-` + letter + `)`
	longLabel  = labelHead + inLabel + `{0,58}` + letter + `)`
	shortLabel = labelHead + inLabel + `{0,25}` + letter + `)`
	// at most 253 characters
	hostname = `(` + longLabel + `(\.` + longLabel + `){0,2}|` + shortLabel + `(\.` + shortLabel +
		`){3,7})`
	atom = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~\\-]+"
	// the characters of an IRI that a URI does not have, and those that only its query has
	beyondURI = `\x{a0}-\x{d7ff}\x{f900}-\x{fdcf}\x{fdf0}-\x{ffef}\x{10000}-\x{1fffd}` +
		`\x{20000}-\x{2fffd}\x{30000}-\x{3fffd}\x{40000}-\x{4fffd}\x{50000}-\x{5fffd}` +
		`\x{60000}-\x{6fffd}\x{70000}-\x{7fffd}\x{80000}-\x{8fffd}\x{90000}-\x{9fffd}` +
		`\x{a0000}-\x{afffd}\x{b0000}-\x{bfffd}\x{c0000}-\x{cfffd}\x{d0000}-\x{dfffd}` +
		`\x{e1000}-\x{efffd}`
	inQuery = `\x{e000}-\x{f8ff}\x{f0000}-\x{ffffd}\x{100000}-\x{10fffd}`
	scheme  = `[a-zA-Z][a-zA-Z0-9+\-.]*:`
)

// references makes the expressions of a URI and of a reference. extra are the allowed characters
// outside ASCII, query those only allowed in a query.
func references(extra, query string) (absolute, relative string) {
	const encoded = `%` + hexadecimal + `{2}`
	name := `[a-zA-Z0-9\-._~!$&'()*+,;=` + extra
	segment, noColon := `(`+name+`:@]|`+encoded+`)`, `(`+name+`@]|`+encoded+`)`
	inPath := `(` + name + `:@/]|` + encoded + `)*`
	authority := `//((` + name + `:]|` + encoded + `)*@)?((` + name + `]|` + encoded +
		`)*|\[(` + ipv6 +
		`|[vV]` + hexadecimal + `+\.[a-zA-Z0-9\-._~!$&'()*+,;=:]+)\])(:[0-9]*)?(/` + inPath + `)?`
	tail := `(\?(` + name + query + `:@/?]|` + encoded + `)*)?` +
		`(#(` + name + `:@/?]|` + encoded + `)*)?`
	// without an authority a path must not begin with //
	rooted := `/(` + segment + inPath + `)?`
	absolute = scheme + `(` + authority + `|` + rooted + `|` + segment + inPath + `|)` + tail
	relative = `(` + authority + `|` + rooted + `|` + noColon + `+(/` + inPath + `)?|)` + tail
	return absolute, absolute + `|` + relative
}

// uriTemplate is RFC 6570: literals, and expressions in braces.
const (
	templateName = `([a-zA-Z0-9_]|%` + hexadecimal + `{2})(\.?([a-zA-Z0-9_]|%` + hexadecimal +
		`{2}))*(:[1-9][0-9]{0,3}|\*)?`
	uriTemplate = `([!#$&-;=?-\[\]_a-z~` + beyondURI + inQuery + `]|%` + hexadecimal +
		`{2}|\{[+#./;?&=,!@|]?` + templateName + `(,` + templateName + `)*\})*`
)

// ipv6 is eight groups, where :: replaces one or more; the last two may be an IPv4 address.
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

var (
	uri, uriReference = references("", "")
	iri, iriReference = references(beyondURI, inQuery)
)

// formats must match completely.
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
	"uri":           uri,
	"uri-reference": uriReference,
	"iri":           iri,
	"iri-reference": iriReference,
	"uri-template":  uriTemplate,
	"json-pointer":  `(/([^~/]|~[01])*)*`,
	"regex":         expressions(3),
}

// ordered is two counts in ascending order.
const ordered = `[0-9],[1-9][0-9]{1,2}|[1-9][0-9],[1-9][0-9]{2}|0,[0-9]|1,[1-9]|2,[2-9]|3,[3-9]|` +
	`4,[4-9]|5,[5-9]|6,[6-9]|7,[7-9]|8,[89]|9,9|1[0-9],[2-9][0-9]|2[0-9],[3-9][0-9]`

// expressions are regular expressions with nested groups up to a depth. Those of ECMA 262 are not a
// regular language; these have the same meaning in any dialect.
func expressions(depth int) string {
	const (
		escaped = `\\([dDwWsSnrtfv.*+?^$|()\[\]{}\\/\-]|x` + hexadecimal + `{2})`
		plain   = `[^\x00-\x1f\\^$.|?*+()\[\]{}]`
		inSet   = `([^\x00-\x1f\\\[\]^&~|\-]|` + escaped + `)`
		ranges  = `a-z|A-Z|0-9|a-f|A-F|1-9|0-7`
		set     = `\[\^?(` + inSet + `|` + ranges + `)+-?\]`
		times   = `([*+?]|\{([0-9]{1,3},?|` + ordered + `)\})\??`
	)
	atom := plain + `|` + escaped + `|\.|` + set
	if depth > 0 {
		atom += `|\((\?[:=!])?` + expressions(depth-1) + `\)`
	}
	branch := `\^?((` + atom + `)(` + times + `)?)*\$?`
	return branch + `(\|` + branch + `)*`
}

func isEnforced(name string) bool { return formats[name] != "" }
