// The memory of sampled tokens.
//
// Clients send a conversation back as text, and most of them drop the reasoning. Rendered again,
// such a history has different tokens from those that the model has seen: answers get worse, and
// the prefix cache misses. So the sampled tokens are stored: a turn that ended in a call under the
// call's id, an answer under a hash of its text.
//
// What must stay true: for a conversation that is not stored nothing is written to disk; remembered
// tokens are used only if they match the client's text (same arguments, same answer, same text
// before them). If a client edits its history, its own text is rendered.

package session

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/records"
)

// segment is one message of the assistant as it was sampled.
type segment struct {
	Reasoning bool   `json:",omitempty"` // left out once the turn has its answer
	Tokens    tokens // those after <|start|>assistant, with the end token
}

// tokens are stored as varints.
type tokens []int32

func (t tokens) MarshalJSON() ([]byte, error) {
	var b []byte
	for _, id := range t {
		b = binary.AppendUvarint(b, uint64(id))
	}
	return json.Marshal(b)
}

func (t *tokens) UnmarshalJSON(text []byte) error {
	var b []byte
	err := json.Unmarshal(text, &b)
	for len(b) > 0 {
		id, n := binary.Uvarint(b)
		if n <= 0 || id >= token.VocabSize {
			return errors.New("stored bytes are not a token")
		}
		*t, b = append(*t, int32(id)), b[n:]
	}
	return err
}

// sampledTurn is a run of assistant messages: all between two messages of others.
type sampledTurn struct {
	Arguments string `json:",omitempty"` // of the call that ended it, "" for an answer
	Segments  []segment
}

func answerKey(text string) string {
	h := sha256.Sum256([]byte(text))
	return "answer:" + hex.EncodeToString(h[:])
}

func callKey(id string) string { return "call:" + id }

// remember stores a turn, on disk only if its conversation is stored there.
func (s turnStore) remember(key string, t sampledTurn, persist bool) {
	value, _ := json.Marshal(t) // strings, bools and bytes
	// a turn that is too large is not worth remembering
	_ = s.Put(records.Record{Kind: records.KindTurn, Key: s.prefix + key, Value: value,
		InMemory: !persist})
}

// turnStore has the turns of a client. A salt separates those of its own users.
type turnStore struct {
	records.Store
	prefix string // of their keys
}

func turnsOf(s records.Store, client, salt string) turnStore {
	t := turnStore{Store: records.Owned(s, client)}
	if salt != "" {
		sum := sha256.Sum256([]byte(salt))
		t.prefix = hex.EncodeToString(sum[:8]) + " "
	}
	return t
}

func (r Request) turns(s records.Store) turnStore { return turnsOf(s, r.client(), r.Salt) }

// recall finds a stored turn; nil if there is none.
func (s turnStore) recall(key string) *sampledTurn {
	r, ok := s.Get(records.KindTurn, s.prefix+key)
	var t sampledTurn
	if !ok || json.Unmarshal(r.Value, &t) != nil {
		return nil
	}
	return &t
}

// sameArguments tells whether two argument texts are equal, as JSON or as trimmed texts.
func sameArguments(a, b string) bool {
	if strings.TrimSpace(a) == strings.TrimSpace(b) {
		return true
	}
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

// sameTexts tells whether r has the same texts for the user as the run, in order. A run that ended
// in a call may lack them: some clients drop them, and the call's id already identifies the turn.
func sameTexts(r *sampledTurn, run []Message) bool {
	var sent []string
	for _, m := range run {
		if !isReasoning(m) && m.Recipient == "" {
			sent = append(sent, m.Text())
		}
	}
	if r.Arguments != "" && len(sent) == 0 {
		return true
	}
	var sampled []string
	for _, s := range r.Segments {
		if text, ok := s.visibleText(); ok {
			sampled = append(sampled, text)
		}
	}
	return slices.Equal(sampled, sent)
}

// visibleText returns the text of a segment that the user sees; false for reasoning and calls.
func (s segment) visibleText() (text string, ok bool) {
	body := slices.Index(s.Tokens, token.Message)
	if s.Reasoning || body < 0 || len(s.Tokens) == 0 || s.Tokens[len(s.Tokens)-1] == token.Call {
		return "", false
	}
	if strings.Contains(string(token.Get().Decode(nil, s.Tokens[:body])), " to=") {
		return "", false
	}
	return string(token.Get().Decode(nil, s.Tokens[body+1:len(s.Tokens)-1])), true
}

// Forget deletes the sampled tokens of these messages; salt is that of their requests.
func Forget(c *records.Change, salt string, messages []Message) {
	prefix := turnsOf(nil, "", salt).prefix
	for _, m := range messages {
		if m.CallID != "" {
			c.Delete(records.KindTurn, prefix+callKey(m.CallID))
		}
		c.Delete(records.KindTurn, prefix+answerKey(m.Text()))
	}
}
