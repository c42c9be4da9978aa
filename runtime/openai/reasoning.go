// Reasoning on its way out and back.
//
// gpt-oss needs its reasoning back until the turn has its final answer, and clients return it in
// different forms: as text, only as encrypted_content, only as a summary, under one of several
// names. So it is sent as text and as encrypted_content, and accepted in every form that was seen.
// For clients that drop it the session remembers it.
//
// encrypted_content is not secret: the same text is sent beside it.

package openai

import (
	"encoding/base64"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// sealVersion marks content that this server made; content of others (a conversation begun
// elsewhere) cannot be read.
const sealVersion = "ossrun1."

// seal makes encrypted_content of a reasoning text.
func seal(text string) string {
	return sealVersion + base64.RawURLEncoding.EncodeToString([]byte(text))
}

// unseal is the text of sealed content, "" if it is not ours.
func unseal(s string) string {
	body, ours := strings.CutPrefix(s, sealVersion)
	if !ours {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// thought finds the reasoning of an assistant message of chat completions.
func thought(o *object) string {
	for _, holder := range []*object{o, o.object("provider_specific_fields")} {
		for _, name := range []string{"reasoning", "reasoning_content"} {
			if v := holder.get(name); v.Kind() == jsondoc.String {
				return v.text()
			}
		}
	}
	// the Agents SDK for JavaScript leaves it on a text part
	if v := o.get("content"); v.Kind() == jsondoc.Array {
		for _, part := range v.list() {
			if part.Kind() != jsondoc.Object {
				continue
			}
			if r := part.object().get("reasoning_content"); r.Kind() == jsondoc.String {
				return r.text()
			}
		}
	}
	return ""
}

// thoughtOf finds the reasoning of a reasoning item of responses.
func thoughtOf(o *object) string {
	if text := texts(o.list("content")); text != "" {
		return text
	}
	if text := unseal(o.text("encrypted_content")); text != "" {
		return text
	}
	return texts(o.list("summary"))
}

// texts joins the text of parts that have one.
func texts(parts []value) string {
	var list []string
	for _, p := range parts {
		if t := p.object().text("text"); t != "" {
			list = append(list, t)
		}
	}
	return strings.Join(list, "\n\n")
}
