// The text of a message's parts: of content, of files in the request, and of reasoning in answers
// and histories.
//
// gpt-oss needs its reasoning back until the turn has its final answer, and clients return it in
// different forms: as text, only as encrypted_content, only as a summary, under one of several
// names. So it is sent as text and as encrypted_content, and accepted in every form that was seen.
// For clients that drop it the session remembers it. encrypted_content is not secret: the same text
// is sent next to it.
//
// What must stay true: history is immutable for the client, so an unknown part never makes a
// conversation unusable: in the past it becomes text, a note or nothing. Only unanswered messages
// can be refused.

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
		holder.AddFault(fields.Unsupported(holder.Value().Path, "a file by its id or URL",
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
		o.AddFault(fields.Invalid(path, "%s is not base64: %v", path, err))
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

// ImageParts are the types of parts that hold images, of all APIs.
var ImageParts = []string{"input_image", "image_url", "image"}

// structuredParts are the types of parts that contain text deeper inside.
var structuredParts = []string{"search_result", "document", "resource"}

// LeftOutNote replaces a part that the model cannot read.
func LeftOutNote(kind string) string { return "[" + kind + " left out: the model reads text only]" }

// Content reads text: a string, parts of text joined unchanged, or null. Images and the like are
// refused. In a tool's result (lenient), in the past, or if the server ignores images, a note
// replaces them: refusing would end the agent's whole conversation. Text inside other parts of a
// result is read.
func Content(m *fields.Object, name string, lenient bool) string {
	v := m.Get(name)
	past := m.IsPast()
	switch v.Kind() {
	case jsondoc.Null:
		return ""
	case jsondoc.String:
		return v.Text()
	case jsondoc.Array:
	case jsondoc.Object:
		if lenient {
			return cmp.Or(TextInside(v.Object()), string(v.Raw))
		}
		fallthrough
	default:
		v.WrongType("a string or an array of content parts")
		return ""
	}
	list := v.List()
	all := make([]string, 0, len(list))
	for _, p := range list {
		if p.Kind() == jsondoc.String {
			all = append(all, p.Text())
			continue
		}
		part := p.Object()
		switch kind := part.Text("type"); {
		case slices.Contains(textParts, kind), kind == "" && part.Has("text"):
			all = append(all, part.Text("text")+part.Text("refusal"))
		case (kind == "input_file" || kind == "file") && !lenient && !past:
			all = append(all, fileText(part))
		case (m.LeavesImagesOut() || lenient) && slices.Contains(ImageParts, kind):
			all = append(all, LeftOutNote(kind))
		case (lenient || past) && slices.Contains(thoughtParts, kind):
		case lenient, past, slices.Contains(structuredParts, kind):
			all = append(all, cmp.Or(TextInside(part), LeftOutNote(kind)))
		case kind == "":
			part.Get("type").Missing()
		default:
			part.Unreadable("the model reads text only")
		}
	}
	return strings.Join(all, "")
}

// NeedContent adds a fault for a message without content.
func NeedContent(m *fields.Object) {
	if kind := m.Get("content").Kind(); kind == jsondoc.Null ||
		kind == jsondoc.Array && m.Get("content").Count(1) == 0 {
		m.Get("content").Missing()
	}
}

// maxDepth limits the depth at which text is looked for in a part.
const maxDepth = 8

// textMembers are the members of parts that have text, in the order of reading.
var textMembers = []string{"title", "filename", "uri", "url", "description", "context", "text",
	"refusal", "stdout", "stderr", "logs", "output", "result", "results", "resource", "source",
	"content", "data", "json", "error", "error_code", "tools", "name"}

// thoughtParts hold reasoning, which is not part of the text.
var thoughtParts = []string{"thinking", "redacted_thinking", "reasoning"}

// TextInside is the text in a part, item or block of any type, "" if it has none: of a search
// result, a document, a resource of an MCP server, or a shell's output.
func TextInside(o *fields.Object) (text string) {
	if o != nil {
		o.IgnoreFaults(func(v fields.Value) { text = textInside(v, maxDepth) })
	}
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
	switch {
	case slices.Contains(thoughtParts, word):
		return ""
	case slices.ContainsFunc([]string{"image", "audio", "video", "screenshot"},
		func(what string) bool { return strings.Contains(word, what) }):
		return LeftOutNote(word)
	case o.Has("file_data") || o.Has("file"):
		return cmp.Or(fileText(o), LeftOutNote(word))
	case o.Has("blob"):
		return cmp.Or(FileContents(o, "", o.Text("blob")), LeftOutNote(cmp.Or(word, "blob")))
	case word == "base64":
		return cmp.Or(FileContents(o, "", o.Text("data")), LeftOutNote(word))
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
