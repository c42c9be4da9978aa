// The memory of what the model sampled.
//
// Clients send a conversation back as text, and most of them drop the reasoning. When such a
// history is rendered again, its tokens differ from those that the model has seen: answers get
// worse, and the prefix cache finds nothing. So the sampled tokens are kept: those of a turn that
// ended in a call under the call's id, those of an answer under a hash of its text.
//
// What must stay true: remembered tokens are used only if they say the same as the client's text
// (same arguments, same answer, same text before them). If a client edits its history, its own text
// is rendered.

package session

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/token"
)

// segment is one message of the assistant as it was sampled.
type segment struct {
	reasoning bool    // analysis without a recipient: left out once the turn has its answer
	tokens    []int32 // those after <|start|>assistant, with the end token
}

// sampledTurn is a run of assistant messages: all between two messages of others.
type sampledTurn struct {
	arguments string // of the call that ended it, "" for an answer
	segments  []segment
}

// answerKey is the key of a turn that ended in an answer.
func answerKey(text string) string {
	h := sha256.Sum256([]byte(text))
	return "answer:" + hex.EncodeToString(h[:])
}

// callKey is the key of a turn that ended in a call.
func callKey(id string) string { return "call:" + id }

func remember(s Store, key string, t sampledTurn) {
	kept := keptTurn{Arguments: t.arguments}
	for _, seg := range t.segments {
		k := keptSegment{Reasoning: seg.reasoning}
		for _, id := range seg.tokens {
			k.Tokens = binary.AppendUvarint(k.Tokens, uint64(id))
		}
		kept.Segments = append(kept.Segments, k)
	}
	value, _ := json.Marshal(kept) // strings, bools and bytes
	s.Put(Record{Kind: KindTurn, Key: key, Value: value})
}

func recall(s Store, key string) *sampledTurn {
	r, ok := s.Get(KindTurn, key)
	if !ok {
		return nil
	}
	var kept keptTurn
	if json.Unmarshal(r.Value, &kept) != nil {
		return nil
	}
	t := &sampledTurn{arguments: kept.Arguments}
	for _, k := range kept.Segments {
		seg := segment{reasoning: k.Reasoning}
		for b := k.Tokens; len(b) > 0; {
			id, n := binary.Uvarint(b)
			if n <= 0 || id >= token.VocabSize {
				return nil
			}
			seg.tokens = append(seg.tokens, int32(id))
			b = b[n:]
		}
		t.segments = append(t.segments, seg)
	}
	return t
}

// keptTurn is the stored form of a sampledTurn.
type keptTurn struct {
	Arguments string `json:",omitempty"`
	Segments  []keptSegment
}

type keptSegment struct {
	Reasoning bool   `json:",omitempty"`
	Tokens    []byte // ids, as varints
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

// saysTheSame tells whether r has the same texts for the user as the run, in the same order. A run
// that ended in a call may have no such texts at all: some clients drop them, and the call's id
// already identifies the turn.
func saysTheSame(r *sampledTurn, run []Message) bool {
	var said []string
	for _, m := range run {
		if !isReasoning(m) && m.Recipient == "" {
			said = append(said, m.Text())
		}
	}
	if r.arguments != "" && len(said) == 0 {
		return true
	}
	var kept []string
	for _, s := range r.segments {
		if text, shown := s.shown(); shown {
			kept = append(kept, text)
		}
	}
	return slices.Equal(kept, said)
}

// shown returns the text of a segment that the user sees; false for reasoning and calls.
func (s segment) shown() (text string, ok bool) {
	body := slices.Index(s.tokens, token.Message)
	if s.reasoning || body < 0 || len(s.tokens) == 0 || s.tokens[len(s.tokens)-1] == token.Call {
		return "", false
	}
	if strings.Contains(string(token.Get().Decode(nil, s.tokens[:body])), " to=") {
		return "", false
	}
	return string(token.Get().Decode(nil, s.tokens[body+1:len(s.tokens)-1])), true
}
