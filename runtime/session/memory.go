// The memory of what the model sampled.
//
// Clients send a conversation back as text, and most of them drop the reasoning on the way.
// Rendered again, such a history has other tokens than the ones the model saw, so its answers get
// worse and no cached prefix fits. So the very tokens are kept: of a turn that ended in a call
// under the call's id, of an answer under a hash of its text.
//
// What must stay true: a remembered piece is used only where it says what the client says (same
// arguments, same answer, same words before them), so a client that edits its history gets its own
// words rendered.

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
	reasoning bool    // analysis without a recipient: left out once the turn has its final
	tokens    []int32 // from after <|start|>assistant to the ender, which is included
}

// sampledTurn is one assistant run: the messages between two messages of others.
type sampledTurn struct {
	arguments string // of the call that ended it, "" for an answer
	segments  []segment
}

// answerKey is what a turn that ended in an answer is kept under.
func answerKey(text string) string {
	h := sha256.Sum256([]byte(text))
	return "answer:" + hex.EncodeToString(h[:])
}

// callKey is what a turn that ended in a call is kept under.
func callKey(id string) string { return "call:" + id }

// remember keeps a turn.
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

// recall finds a turn, nil where it is not known.
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

// keptTurn is a sampledTurn in the store.
type keptTurn struct {
	Arguments string `json:",omitempty"`
	Segments  []keptSegment
}

type keptSegment struct {
	Reasoning bool   `json:",omitempty"`
	Tokens    []byte // ids, as varints
}

// sameArguments tells whether two argument texts say the same: equal as JSON, else equal but for
// white space around.
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

// saysTheSame tells whether the texts for the user that r holds are those of the run, in order. A
// run that holds nothing but its last message is taken as one whose client leaves such texts away,
// if the last message was a call: its id says whose it is.
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

// shown is the text of a segment that is for the user; false for reasoning and calls.
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
