// Files inside a message: the text of a text file or a PDF document that stands in the request is
// read.

package openai

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ossrun/ossrun/runtime/tools/pdf"
)

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

// fileContents is the text of a file in base64.
func fileContents(o *object, at, data string) string {
	b, err := base64.StdEncoding.DecodeString(data)
	switch {
	case err != nil:
		o.complain(invalid(at, "%s is not base64: %v", at, err))
	case pdf.Is(b):
		text, err := pdf.Text(o.c.context(), b)
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

// documentText is the text of a document of Anthropic's API.
func documentText(block *object) string {
	source := block.object("source")
	var text string
	switch kind := source.text("type"); kind {
	case "base64":
		text = fileContents(source, source.at("data"), source.text("data"))
	case "text":
		text = source.text("data")
	case "content":
		text = content(source, "content", false)
	default:
		block.get("source").unsupported(fmt.Sprintf("a document by %q", kind),
			"send it in base64 or as text")
	}
	if title := block.text("title"); title != "" && text != "" {
		return title + ":\n" + text
	}
	return text
}
