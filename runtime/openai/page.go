// GET /: a chat page for a person with a browser, one file in the program.
//
// What must stay true: the page fetches nothing from elsewhere and runs no script but its own; the
// policy that is sent with it names the hashes of its one script and one style, so that text of a
// model that found its way into the page as a script would not run. The page needs no key: it asks
// the user for the key that its requests need.

package openai

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"sync"
)

//go:embed page/chat.html
var chatPage []byte

var chatPolicy = sync.OnceValue(func() string { return policyOf(chatPage) })

// policyOf allows what stands in a page, and requests to the server that it came from.
func policyOf(page []byte) string {
	return "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; " +
		"form-action 'none'; frame-ancestors 'none'; script-src " + hashOf(page, "script") +
		"; style-src " + hashOf(page, "style")
}

// hashOf is the hash of what stands in the page's element of a name, as a policy writes it.
func hashOf(page []byte, element string) string {
	_, text, _ := bytes.Cut(page, []byte("<"+element+">"))
	text, _, _ = bytes.Cut(text, []byte("</"+element+">"))
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (p *port) showPage(e *exchange, _ *http.Request) (any, *fault) {
	writeHTML(e, chatPage, chatPolicy())
	return nil, nil
}

func writeHTML(e *exchange, page []byte, policy string) {
	h := e.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache") // it is the running version's
	_, _ = e.Write(page)               // an error means that the browser is gone
}
