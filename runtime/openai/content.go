// The text of a message's parts: of content, of files that stand in the request, and of reasoning
// on its way out and back.
//
// gpt-oss needs its reasoning back until the turn has its final answer, and clients return it in
// different forms: as text, only as encrypted_content, only as a summary, under one of several
// names. So it is sent as text and as encrypted_content, and accepted in every form that was seen.
// For clients that drop it the session remembers it. encrypted_content is not secret: the same text
// is sent beside it.

package openai

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/tools/pdf"
)

// sealVersion marks content that this server made; content of others (a conversation begun
// elsewhere) cannot be read.
const sealVersion = "ossrun1."

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

// fileText is the text of a file part: input_file of responses, file of chat completions. The model
// reads text only, and this server keeps no files and fetches none.
func fileText(part *object) string {
	holder := part.inner("file")
	if !holder.has("file_data") {
		holder.complain(unsupported(holder.path, "a file by its id or URL",
			"send its text in file_data"))
		return ""
	}
	at := holder.at("file_data")
	data := holder.text("file_data")
	if header, body, ok := strings.Cut(data, ";base64,"); ok && strings.HasPrefix(header, "data:") {
		data = body
	}
	text := fileContents(holder, at, data)
	if name := holder.text("filename"); name != "" && text != "" {
		return name + ":\n" + text
	}
	return text
}

func fileContents(o *object, at, data string) string {
	b, err := base64.StdEncoding.DecodeString(data)
	switch {
	case err != nil:
		o.complain(invalid(at, "%s is not base64: %v", at, err))
	case pdf.Is(b):
		text, err := pdf.Text(o.c.ctx, b)
		if err != nil {
			o.complain(invalid(at, "%s: %v", at, err))
		}
		return text
	case !utf8.Valid(b):
		o.complain(unsupported(at, "a file that is neither text in UTF-8 nor a PDF document",
			"the model reads text only"))
	default:
		return string(b)
	}
	return ""
}

// textParts are the types of content parts that hold text, of both APIs.
var textParts = []string{"text", "input_text", "output_text", "refusal", "summary_text",
	"reasoning_text"}

// imageParts are the types of parts that hold images, of all APIs.
var imageParts = []string{"input_image", "image_url", "image"}

func leftOut(kind string) string { return "[" + kind + " left out: the model reads text only]" }

// content reads text: a string, parts of text joined as they are, or null. The model reads text
// only, so images and the like are refused; where a tool returned one (lenient) or the server is
// told to leave images out, a note stands in its place: refusing would end the agent's whole
// conversation.
func content(m *object, name string, lenient bool) string {
	v := m.get(name)
	switch v.Kind() {
	case jsondoc.Null:
		return ""
	case jsondoc.String:
		return v.text()
	case jsondoc.Array:
	default:
		v.wrong("a string or an array of content parts")
		return ""
	}
	list := v.list()
	all := make([]string, 0, len(list))
	for _, p := range list {
		if p.Kind() == jsondoc.String {
			all = append(all, p.text())
			continue
		}
		part := p.object()
		switch kind := part.text("type"); {
		case slices.Contains(textParts, kind), kind == "" && part.has("text"):
			all = append(all, part.text("text")+part.text("refusal"))
		case (kind == "input_file" || kind == "file") && !lenient:
			all = append(all, fileText(part))
		case lenient, m.c.images && slices.Contains(imageParts, kind):
			all = append(all, leftOut(kind))
		case kind == "":
			part.get("type").missing()
		default:
			part.unreadable("the model reads text only")
		}
	}
	return strings.Join(all, "")
}

func needContent(m *object) {
	if kind := m.get("content").Kind(); kind == jsondoc.Null ||
		kind == jsondoc.Array && m.get("content").Count(1) == 0 {
		m.get("content").missing()
	}
}
