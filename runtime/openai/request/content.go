// The text of a message's parts: of content, of files in the request, and of reasoning in answers
// and histories.
//
// gpt-oss needs its reasoning back until the turn has its final answer, and clients return it in
// different forms: as text, only as encrypted_content, only as a summary, under one of several
// names. So it is sent as text and as encrypted_content, and accepted in every form that was seen.
// For clients that drop it the session remembers it. encrypted_content is not secret: the same text
// is sent next to it.
//
// What must stay true: history is immutable for the client, so no part makes a conversation
// unusable: it becomes text, a note or nothing. Only the user's last message is refused, if nothing
// in it can be read.

package request

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/tools/pdf"
)

// SealVersion marks content that this server sealed; that of other servers (in a conversation begun
// elsewhere) cannot be read.
const SealVersion = "ossrun1."

// Seal encodes a text for encrypted_content.
func Seal(text string) string {
	return SealVersion + base64.RawURLEncoding.EncodeToString([]byte(text))
}

// Unseal returns the text of sealed content, "" if it is not ours.
func Unseal(s string) string {
	body, ok := strings.CutPrefix(s, SealVersion)
	if !ok {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// fileText returns the text of a file part: input_file of responses, file of chat completions. The
// model reads text only, and this server keeps no files and fetches none.
func fileText(part *fields.Object) string {
	holder := part.Inner("file")
	if !holder.Has("file_data") {
		part.AddFault(fields.Unsupported(part.PathOf("file"), "a file by its id or URL",
			"send its text in file_data"))
		return ""
	}
	path := holder.PathOf("file_data")
	data := holder.Text("file_data")
	if header, body, ok := strings.Cut(data, ";base64,"); ok && strings.HasPrefix(header, "data:") {
		data = body
	}
	text := FileContents(holder, path, data)
	if name := holder.Text("filename"); name != "" && text != "" {
		return name + ":\n" + text
	}
	return text
}

// FileContents returns the text of a file from base64; path is its path in o.
func FileContents(o *fields.Object, path, data string) string {
	b, err := base64.StdEncoding.DecodeString(data)
	switch {
	case err != nil:
		o.AddFault(fields.Invalid(path, "%s is not base64", path))
	case pdf.Is(b):
		text, err := pdf.Text(o.Ctx(), b)
		if err != nil {
			o.AddFault(fields.Invalid(path, "%s: %v", path, err))
		}
		return text
	case !utf8.Valid(b):
		o.AddFault(fields.Unsupported(path,
			"a file that is neither text in UTF-8 nor a PDF document", "the model reads text only"))
	default:
		return string(b)
	}
	return ""
}

// textParts are the types of content parts that hold text, of both APIs.
var textParts = []string{"text", "input_text", "output_text", "refusal", "summary_text",
	"reasoning_text"}

// structuredParts are the types of parts that contain text deeper inside.
var structuredParts = []string{"search_result", "document", "resource"}

// media are words in the types of parts, and what the notes of the history and of newer messages
// call such a part. Only files may have text.
var media = [][3]string{{"image", "image", "an image"}, {"screenshot", "image", "an image"},
	{"audio", "audio", "audio"}, {"video", "video", "a video"}, {"file", "file", "a file"},
	{"document", "file", "a file"}}

// mediaOf is the row of media for a type of parts, or a new one.
func mediaOf(kind string) (row [3]string, hasText bool) {
	for _, m := range media {
		if strings.Contains(kind, m[0]) {
			return m, m[1] == "file"
		}
	}
	return [3]string{kind, cmp.Or(kind, "part"), "more than text"}, true
}

// UnreadNote replaces a part of the history that the model cannot read.
func UnreadNote(kind string) string {
	row, _ := mediaOf(kind)
	return "[" + row[1] + ": not read]"
}

// AttachedNote replaces a part that the model may speak of.
func AttachedNote(kind string) string {
	row, _ := mediaOf(kind)
	return "[" + row[2] + " is attached; this model reads text only]"
}

// Texts are the texts of a message's parts. A note replaces a part that cannot be read: to refuse
// one in the history or in a tool's result (lenient) would end an agent's whole conversation. The
// user's last message is refused if it has nothing else; readable tells that it has. gap is put
// between a note and the texts next to it.
func Texts(m *fields.Object, parts []fields.Value, lenient, readable bool, gap string,
	read func(part *fields.Object, kind string) string) []string {
	var refused *fields.Fault
	all := make([]string, 0, len(parts))
	for i, v := range parts {
		kind, text, note := "", "", ""
		f := v.Try(func() {
			if v.Kind() == jsondoc.String {
				text = v.Text()
				return
			}
			part := v.Object()
			kind = part.Text("type")
			if row, hasText := mediaOf(kind); hasText && part != nil {
				text = read(part, kind)
			} else if part != nil {
				readable = readable || row[1] == "image" && m.IgnoresImages()
				part.Unreadable("the model reads text only")
			}
		})
		switch {
		case m.Ctx().Err() != nil:
			return nil
		case f == nil:
			readable = readable || strings.TrimSpace(text) != ""
		case m.IsPast() && !lenient:
			note = UnreadNote(kind)
		default:
			note = AttachedNote(kind)
			if !lenient {
				v.Note(cmp.Or(kind, "content"))
				refused = cmp.Or(refused, f)
			}
		}
		if note != "" && i > 0 {
			note = gap + note
		}
		if note != "" && i < len(parts)-1 {
			note += gap
		}
		all = append(all, text+note)
	}
	if !readable {
		m.AddFault(refused)
	}
	return all
}

// Content reads text: a string, parts of text joined unchanged, or null. See Texts for other parts
// and for lenient. Text inside other parts of a result or of the history is read.
func Content(m *fields.Object, name string, lenient bool) string {
	v := m.Get(name)
	inside := lenient || m.IsPast()
	switch v.Kind() {
	case jsondoc.Null:
		return ""
	case jsondoc.String:
		return v.Text()
	case jsondoc.Array:
	default:
		if !inside {
			v.WrongType("a string or an array of content parts")
		}
		return cmp.Or(textIn(v), string(v.Raw))
	}
	return strings.Join(Texts(m, v.List(), lenient, false, "\n",
		func(part *fields.Object, kind string) (text string) {
			switch {
			case slices.Contains(textParts, kind), kind == "" && part.Has("text"):
				return part.Text("text") + part.Text("refusal")
			case kind == "input_file" || kind == "file":
				return fileText(part)
			case inside && slices.Contains(thoughtParts, kind):
				return ""
			case inside, slices.Contains(structuredParts, kind):
				text = TextInside(part)
			}
			if text == "" && kind == "" {
				part.Get("type").Missing()
			} else if text == "" {
				part.Unreadable("the model reads text only")
			}
			return text
		}), "")
}

// maxDepth limits the depth at which text is looked for in a part.
const maxDepth = 8

// textMembers are the members of parts that have text, in the order of reading.
var textMembers = []string{"title", "filename", "uri", "url", "description", "context", "text",
	"refusal", "stdout", "stderr", "logs", "output", "result", "results", "resource", "source",
	"content", "data", "json", "error", "error_code", "tools", "name",
	"tool_name"}

// thoughtParts hold reasoning, which is not part of the text.
var thoughtParts = []string{"thinking", "redacted_thinking", "reasoning"}

// TextInside is the text in a part, item or block of any type, "" if it has none: of a search
// result, a document, a resource of an MCP server, or a shell's output.
func TextInside(o *fields.Object) string {
	if o == nil {
		return ""
	}
	return textIn(o.Value())
}

// textIn is TextInside for a value of any type.
func textIn(v fields.Value) (text string) {
	v.IgnoreFaults(func(v fields.Value) { text = textInside(v, maxDepth) })
	return text
}

func textInside(v fields.Value, levels int) string {
	switch v.Kind() {
	case jsondoc.String:
		return v.Text()
	case jsondoc.Array:
		var texts []string
		for _, item := range v.List() {
			if levels > 0 {
				texts = append(texts, textInside(item, levels-1))
			}
		}
		return strings.Join(NotEmpty(texts), "\n")
	case jsondoc.Object:
	case jsondoc.Null:
		return ""
	default:
		return string(v.Raw)
	}
	o := v.Object()
	kind := o.Get("type")
	word := ""
	if kind.Kind() == jsondoc.String {
		word = kind.Text()
	}
	_, hasText := mediaOf(word)
	switch {
	case slices.Contains(thoughtParts, word):
		return ""
	case !hasText:
		return UnreadNote(word)
	case o.Has("file_data") || o.Has("file"):
		return cmp.Or(fileText(o), UnreadNote(word))
	case o.Has("blob"):
		return cmp.Or(FileContents(o, "", o.Text("blob")), UnreadNote(cmp.Or(word, "blob")))
	case word == "base64":
		return cmp.Or(FileContents(o, "", o.Text("data")), UnreadNote(word))
	}
	var texts []string
	for _, name := range textMembers {
		member := o.Get(name)
		if (name == "data" || name == "json") && member.Kind() == jsondoc.Object {
			texts = append(texts, string(member.Raw))
		} else if levels > 0 {
			texts = append(texts, textInside(member, levels-1))
		}
	}
	return strings.Join(NotEmpty(texts), "\n")
}
