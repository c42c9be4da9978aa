// A second opinion on masks: llguidance (Python) allows everything that we allow.

package schema

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestSecondOpinion(t *testing.T) {
	if os.Getenv("OSSRUN_LONG") == "" {
		t.Skip("a long test: OSSRUN_LONG=1")
	}
	python := hosttest.Program(t, "python3")
	path := filepath.Join(t.TempDir(), "masks.jsonl")
	f := hosttest.Must(os.Create(path))(t)
	out := json.NewEncoder(f)
	tok := token.Get()
	names := make([]string, automaton.OrdinaryTokens)
	for id := range names {
		names[id] = hex.EncodeToString(tok.TokenBytes(int32(id)))
	}
	hosttest.Check(t, out.Encode(names))
	rng := rand.New(rand.NewPCG(5, 21))
	for _, raw := range walkSchemas {
		c := schemaOf(t, raw)
		for range 12 {
			ids := tok.Encode(nil, walk(rng, c, 300))
			ids = append([]int32{}, ids[:rng.IntN(len(ids)+1)]...)
			m := c.Matcher()
			for _, id := range ids {
				if !m.Accept(id) {
					t.Fatalf("%s: token %d is refused", raw, id)
				}
			}
			var bits []byte
			for _, w := range m.Mask(token.Call) {
				bits = binary.LittleEndian.AppendUint64(bits, w)
			}
			if err := out.Encode(map[string]any{"schema": json.RawMessage(raw), "prefix": ids,
				"done": m.Done(), "mask": base64.StdEncoding.EncodeToString(bits)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	hosttest.Check(t, f.Close())
	report, err := exec.Command(python, "testdata/second_opinion.py", path).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 3 {
		hosttest.Lacks(t, "python3 has no llguidance")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, report)
	}
	t.Log(strings.TrimSpace(string(report)))
}
