// The JSON form of messages, that of OpenAI's library:
//
//	{"role": "user", "name": ..., "recipient": ..., "content": "text" or a list,
//	 "channel": ..., "content_type": ...}
//
// What must stay true: this accepts and refuses the same texts as the library. Names match in case
// and are unique, null is absence, required members must be present, and unknown names are ignored.

package harmony

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

func (m *Message) UnmarshalJSON(b []byte) error {
	v, err := jsondoc.Parse(b, jsondoc.Serde)
	if err != nil {
		return err
	}
	o := jsonFields{value: v}
	*m = Message{}
	role := o.text("role", true)
	for _, f := range []struct {
		field headerFields
		to    *string
		name  string
	}{
		{fieldName, &m.Name, "name"},
		{fieldRecipient, &m.Recipient, "recipient"},
		{fieldChannel, &m.Channel, "channel"},
		{fieldContentType, &m.ContentType, "content_type"},
	} {
		if text := o.text(f.name, false); text != nil {
			m.set(f.field, f.to, *text)
		}
	}
	content := o.required("content", jsondoc.String, jsondoc.Array)
	if o.err != nil {
		return fmt.Errorf("message: %w", o.err)
	}
	if m.Role = Role(*role); !m.Role.IsValid() {
		return fmt.Errorf("message: unknown role: %q", m.Role)
	}
	if content.Kind == jsondoc.String {
		m.Content = []Content{{Type: KindText, Text: content.Text}}
		return nil
	}
	m.Content = make([]Content, len(content.Items))
	for i, item := range content.Items {
		if err := m.Content[i].read(item); err != nil {
			return fmt.Errorf("message: content %d: %w", i, err)
		}
	}
	return nil
}

func (c *Content) read(v *jsondoc.Value) error {
	o := jsonFields{value: v}
	kind := o.text("type", true)
	if o.err != nil {
		return o.err
	}
	switch c.Type = *kind; c.Type {
	case KindText:
		if text := o.text("text", true); text != nil {
			c.Text = *text
		}
		return o.err
	case KindSystem:
		c.System = &SystemContent{}
		return c.System.read(&o)
	case KindDeveloper:
		c.Developer = &DeveloperContent{Instructions: o.text("instructions", false),
			Tools: o.tools()}
		return o.err
	}
	return fmt.Errorf("unknown type: %q", c.Type)
}

func (s *SystemContent) read(o *jsonFields) error {
	s.ModelIdentity = o.text("model_identity", false)
	s.ConversationStartDate = o.text("conversation_start_date", false)
	s.KnowledgeCutoff = o.text("knowledge_cutoff", false)
	s.Tools = o.tools()
	if effort := o.text("reasoning_effort", false); effort != nil {
		s.ReasoningEffort = Effort(*effort)
		if !slices.Contains([]Effort{EffortLow, EffortMedium, EffortHigh}, s.ReasoningEffort) {
			return fmt.Errorf("unknown reasoning_effort: %q, not one of Low, Medium, High", *effort)
		}
	}
	if v := o.optional("channel_config", jsondoc.Object); v.Kind == jsondoc.Object {
		in := jsonFields{value: v}
		list := in.required("valid_channels", jsondoc.Array)
		s.Channels = &ChannelConfig{Required: in.required("channel_required", jsondoc.Bool).Truth}
		for _, c := range list.Items {
			if c.Kind != jsondoc.String {
				in.fail(fmt.Errorf("a channel is %v, not a string", c.Kind))
			}
			s.Channels.Valid = append(s.Channels.Valid, c.Text)
		}
		o.fail(in.err)
	}
	return o.err
}

// jsonFields reads the members of an object and stores the first error.
type jsonFields struct {
	value *jsondoc.Value
	err   error
}

func (o *jsonFields) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// optional returns a member of one of the kinds, or an empty value if it is null or absent.
func (o *jsonFields) optional(name string, kinds ...jsondoc.Kind) *jsondoc.Value {
	if o.value.Kind != jsondoc.Object {
		o.fail(fmt.Errorf("it is %v, not an object", o.value.Kind))
		return &jsondoc.Value{}
	}
	v := o.value.Member(name)
	switch {
	case o.value.IsDuplicate(name):
		o.fail(fmt.Errorf("%s comes twice", name))
	case v.Kind == jsondoc.Absent || v.Kind == jsondoc.Null || slices.Contains(kinds, v.Kind):
		return v
	default:
		o.fail(fmt.Errorf("%s is %v, not %v", name, v.Kind, kinds[len(kinds)-1]))
	}
	return &jsondoc.Value{}
}

// required is optional, but the member must be present.
func (o *jsonFields) required(name string, kinds ...jsondoc.Kind) *jsondoc.Value {
	v := o.optional(name, kinds...)
	if !slices.Contains(kinds, v.Kind) {
		o.fail(fmt.Errorf("%s is missing", name))
	}
	return v
}

func (o *jsonFields) text(name string, needed bool) *string {
	v := o.optional(name, jsondoc.String)
	if v.Kind == jsondoc.String {
		return &v.Text
	}
	if needed {
		o.fail(fmt.Errorf("%s is missing", name))
	}
	return nil
}

func (o *jsonFields) tools() map[string]ToolNamespace {
	v := o.optional("tools", jsondoc.Object)
	if v.Kind != jsondoc.Object {
		return nil
	}
	tools := make(map[string]ToolNamespace, len(v.Members))
	// A namespace must be valid even if a later one replaces it.
	for _, m := range slices.Concat(v.Duplicates, v.Members) {
		var ns ToolNamespace
		if err := ns.read(m.Value); err != nil {
			o.fail(fmt.Errorf("tools of %q: %w", m.Name, err))
		}
		tools[m.Name] = ns
	}
	return tools
}

func (n *ToolNamespace) read(v *jsondoc.Value) error {
	o := jsonFields{value: v}
	n.Name = deref(o.text("name", true))
	n.Description = deref(o.text("description", false))
	for _, item := range o.required("tools", jsondoc.Array).Items {
		in := jsonFields{value: item}
		n.Tools = append(n.Tools, ToolDescription{
			Name:        deref(in.text("name", true)),
			Description: deref(in.text("description", true)),
			Parameters:  in.source("parameters"),
		})
		o.fail(in.err)
	}
	return o.err
}

// source returns a member's original text, nil if it is null or absent.
func (o *jsonFields) source(name string) json.RawMessage {
	v := o.value.Member(name)
	if o.value.IsDuplicate(name) {
		o.fail(fmt.Errorf("%s comes twice", name))
	}
	if v.Kind == jsondoc.Absent || v.Kind == jsondoc.Null {
		return nil
	}
	return json.RawMessage(v.Source)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// MarshalJSON writes the message. Content that is exactly one text is written as a string.
func (m Message) MarshalJSON() ([]byte, error) {
	present := func(field headerFields, value *string) *string {
		if m.has(field, *value) {
			return value
		}
		return nil
	}
	out := messageJSON{m.Role, present(fieldName, &m.Name), present(fieldRecipient, &m.Recipient),
		nil, present(fieldChannel, &m.Channel), present(fieldContentType, &m.ContentType)}
	if len(m.Content) == 1 && m.Content[0].Type == KindText {
		out.Content = m.Content[0].Text
	} else {
		out.Content = append([]Content{}, m.Content...)
	}
	return Marshal(out)
}

type messageJSON struct {
	Role        Role    `json:"role"`
	Name        *string `json:"name,omitempty"`
	Recipient   *string `json:"recipient,omitempty"`
	Content     any     `json:"content"`
	Channel     *string `json:"channel,omitempty"`
	ContentType *string `json:"content_type,omitempty"`
}

// MarshalJSON writes a piece of content with its type.
func (c Content) MarshalJSON() ([]byte, error) {
	switch {
	case c.Type == KindText:
		return Marshal(struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{c.Type, c.Text})
	case c.Type == KindSystem && c.System != nil:
		return Marshal(struct {
			Type string `json:"type"`
			*SystemContent
		}{c.Type, c.System})
	case c.Type == KindDeveloper && c.Developer != nil:
		return Marshal(struct {
			Type string `json:"type"`
			*DeveloperContent
		}{c.Type, c.Developer})
	}
	return nil, errors.New("content has no known type")
}

// Marshal is json.Marshal without escaping <, > and &: special tokens stay readable.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// MarshalJSON writes a list even without tools.
func (n ToolNamespace) MarshalJSON() ([]byte, error) {
	type plain ToolNamespace
	n.Tools = append([]ToolDescription{}, n.Tools...)
	return Marshal(plain(n))
}

// MarshalJSON writes a list even without channels.
func (c ChannelConfig) MarshalJSON() ([]byte, error) {
	type plain ChannelConfig
	c.Valid = append([]string{}, c.Valid...)
	return Marshal(plain(c))
}
