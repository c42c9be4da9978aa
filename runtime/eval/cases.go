// Thirty tasks that want a tool: six tools of our own, five tasks for each, in the shape of
// OpenAI's guide to verifying implementations.

package eval

import "encoding/json"

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	result      string          // what it gives back, whatever it is called with
}

type task struct {
	tool   string
	text   string
	wanted arguments // that the text leaves no choice about
}

type arguments = map[string]any

func parameters(s string) json.RawMessage { return json.RawMessage(s) }

var tools = []tool{
	{"convert_currency", "Convert an amount of money from one currency to another.", parameters(
		`{"type":"object","properties":{"amount":{"type":"number"},"from":{"type":"string",` +
			`"description":"ISO 4217 code"},"to":{"type":"string","description":"ISO 4217 code"}},` +
			`"required":["amount","from","to"],"additionalProperties":false}`), `{"amount":93.5}`},
	{"set_thermostat", "Set the temperature of a room.", parameters(
		`{"type":"object","properties":{"room":{"type":"string","enum":["kitchen","bedroom",` +
			`"bathroom","office"]},"celsius":{"type":"number"}},"required":["room","celsius"],` +
			`"additionalProperties":false}`), `{"ok":true}`},
	{"create_event", "Put an event into the user's calendar.", parameters(
		`{"type":"object","properties":{"title":{"type":"string"},"date":{"type":"string",` +
			`"description":"YYYY-MM-DD"},"start":{"type":"string","description":"HH:MM, 24 hours"},` +
			`"guests":{"type":"array","items":{"type":"string"}}},"required":["title","date"],` +
			`"additionalProperties":false}`), `{"event":"e71"}`},
	{"find_flights", "Find flights between two airports on a day.", parameters(
		`{"type":"object","properties":{"origin":{"type":"string","description":"IATA code"},` +
			`"destination":{"type":"string","description":"IATA code"},"date":{"type":"string",` +
			`"description":"YYYY-MM-DD"},"seats":{"type":"integer"}},` +
			`"required":["origin","destination","date"],"additionalProperties":false}`),
		`{"flights":[{"number":"XY 12","price_eur":142}]}`},
	{"translate_text", "Translate a text.", parameters(
		`{"type":"object","properties":{"text":{"type":"string"},"language":{"type":"string",` +
			`"enum":["de","fr","es","it","ja"]}},"required":["text","language"],` +
			`"additionalProperties":false}`), `{"text":"(the translation)"}`},
	{"query_orders", "Search the shop's orders.", parameters(
		`{"type":"object","properties":{"status":{"type":"string","enum":["open","paid",` +
			`"shipped","returned"]},"filter":{"type":"object","properties":{"field":{"type":` +
			`"string","enum":["total","items","country"]},"above":{"type":"number"}},` +
			`"required":["field"],"additionalProperties":false},"limit":{"type":"integer"}},` +
			`"required":["status"],"additionalProperties":false}`), `{"orders":[],"count":0}`},
}

// Tasks is how many there are.
var Tasks = len(tasks)

var tasks = []task{
	{"convert_currency", "How many dollars are 100 euros? Convert EUR to USD.",
		arguments{"amount": 100., "from": "EUR", "to": "USD"}},
	{"convert_currency", "I have 2500 JPY. What is that in GBP?",
		arguments{"amount": 2500., "from": "JPY", "to": "GBP"}},
	{"convert_currency", "convert 19.99 USD to CHF please",
		arguments{"amount": 19.99, "from": "USD", "to": "CHF"}},
	{"convert_currency", "My hotel costs 480 SEK a night; give me one night in EUR.",
		arguments{"amount": 480., "from": "SEK", "to": "EUR"}},
	{"convert_currency", "What are 7 AUD worth in NZD?",
		arguments{"amount": 7., "from": "AUD", "to": "NZD"}},
	{"set_thermostat", "Make the bedroom 18 degrees Celsius.",
		arguments{"room": "bedroom", "celsius": 18.}},
	{"set_thermostat", "The office should be at 21.5 °C.",
		arguments{"room": "office", "celsius": 21.5}},
	{"set_thermostat", "Heat the bathroom to 24 C, I want to take a bath.",
		arguments{"room": "bathroom", "celsius": 24.}},
	{"set_thermostat", "kitchen to 19 celsius", arguments{"room": "kitchen", "celsius": 19.}},
	{"set_thermostat", "I am leaving. Turn the office down to 16 degrees Celsius.",
		arguments{"room": "office", "celsius": 16.}},
	{"create_event", "Put \"Dentist\" into my calendar on 2026-03-14 at 09:30.",
		arguments{"date": "2026-03-14", "start": "09:30"}},
	{"create_event", "Add the event Planning on 2026-12-01 with guests Ana and Bo.",
		arguments{"date": "2026-12-01", "guests": []any{"Ana", "Bo"}}},
	{"create_event", "New calendar event: title Release, date 2027-01-31.",
		arguments{"title": "Release", "date": "2027-01-31"}},
	{"create_event", "Schedule \"Lunch with Kim\" for 2026-05-05, starting 12:15.",
		arguments{"date": "2026-05-05", "start": "12:15"}},
	{"create_event", "Remind me with a calendar entry: title Taxes, 2026-07-31.",
		arguments{"title": "Taxes", "date": "2026-07-31"}},
	{"find_flights", "Find flights from FRA to LIS on 2026-08-02.",
		arguments{"origin": "FRA", "destination": "LIS", "date": "2026-08-02"}},
	{"find_flights", "Two seats from JFK to SFO on 2026-11-20, what is there?",
		arguments{"origin": "JFK", "destination": "SFO", "date": "2026-11-20", "seats": 2.}},
	{"find_flights", "flights HEL to NRT 2026-04-09",
		arguments{"origin": "HEL", "destination": "NRT", "date": "2026-04-09"}},
	{"find_flights", "We are 5 people and fly from MAD (origin) to GRU on 2027-02-11. Search.",
		arguments{"origin": "MAD", "destination": "GRU", "date": "2027-02-11", "seats": 5.}},
	{"find_flights", "Is there a flight from CPH to OSL on 2026-06-24?",
		arguments{"origin": "CPH", "destination": "OSL", "date": "2026-06-24"}},
	{"translate_text", "Translate \"good morning\" to German with the tool.",
		arguments{"text": "good morning", "language": "de"}},
	{"translate_text", "Use the translator: \"where is the station?\" in Japanese.",
		arguments{"text": "where is the station?", "language": "ja"}},
	{"translate_text", "Have \"thank you\" translated to Spanish.",
		arguments{"text": "thank you", "language": "es"}},
	{"translate_text", "Call the translation tool for \"the bill, please\", language French.",
		arguments{"text": "the bill, please", "language": "fr"}},
	{"translate_text", "I need \"happy birthday\" in Italian; use the tool.",
		arguments{"text": "happy birthday", "language": "it"}},
	{"query_orders", "Show me the open orders.", arguments{"status": "open"}},
	{"query_orders", "List shipped orders, 10 at most.",
		arguments{"status": "shipped", "limit": 10.}},
	{"query_orders", "Which paid orders have a total above 500?", arguments{"status": "paid",
		"filter": arguments{"field": "total", "above": 500.}}},
	{"query_orders", "Find returned orders.", arguments{"status": "returned"}},
	{"query_orders", "Open orders with more than 3 items, please (items above 3), at most 20.",
		arguments{"status": "open", "limit": 20.,
			"filter": arguments{"field": "items", "above": 3.}}},
}
