// Files inside a message: a text file that stands in the request is read as text.

package openai

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// fileText is the text of a file part: input_file of responses, file of chat completions. The model
// reads text only, and this server keeps no files and fetches none.
func fileText(part *object) string {
	holder := part
	if part.has("file") {
		holder = part.object("file")
	}
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
	b, err := base64.StdEncoding.DecodeString(data)
	switch {
	case err != nil:
		holder.complain(invalid(at, "%s is not base64: %v", at, err))
		return ""
	case !utf8.Valid(b):
		holder.complain(unsupported(at, "a file that is not text in UTF-8",
			"the model reads text only"))
		return ""
	}
	if name := holder.text("filename"); name != "" {
		return name + ":\n" + string(b)
	}
	return string(b)
}
