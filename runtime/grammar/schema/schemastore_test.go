// SchemaStore: how much of people's schemas is enforced, and the cost of a token with the worst of
// them. The schemas are not in the tree; .ci/long schemastore FOLDER runs this over a copy of
// SchemaStore's src/schemas/json and writes testdata/schemastore.txt: each of the 330 with the
// lowest sha256 of the name, with its unenforced keywords.
//
// What must stay true: all texts under a completely enforced schema are valid, as judged by
// jsonschema (Python).

package schema

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// storeSchemas is the number of drawn schemas, storeWalks the number of texts for each, and
// storeTokens the number of tokens after which a text is closed.
const storeSchemas, storeWalks, storeTokens = 330, 4, 120

func TestSchemaStore(t *testing.T) {
	folder := os.Getenv("OSSRUN_SCHEMASTORE")
	if folder == "" {
		t.Skip("a long test: .ci/long schemastore FOLDER")
	}
	python := hosttest.Program(t, "python3")
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(paths) < storeSchemas {
		t.Fatalf("%s has %d schemas: %v", folder, len(paths), err)
	}
	drawn := func(path string) []byte {
		sum := sha256.Sum256([]byte(filepath.Base(path)))
		return sum[:]
	}
	slices.SortFunc(paths, func(a, b string) int { return bytes.Compare(drawn(a), drawn(b)) })
	paths = paths[:storeSchemas]
	slices.Sort(paths)
	automaton.Prepare()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var table, in bytes.Buffer
	names := hosttest.Must(json.Marshal(slices.Sorted(maps.Keys(formats))))(t)
	fmt.Fprintf(&in, "%s\n", names)
	var slow []string
	held, silent := 0, 0
	rng := rand.New(rand.NewPCG(43, 330))
	for _, path := range paths {
		raw := hosttest.Must(os.ReadFile(path))(t)
		g, less, err := RelaxedWithin(t.Context(), raw, false)
		if err != nil {
			less = []string{err.Error()}
		}
		if err != nil || len(less) > 0 {
			fmt.Fprintf(&table, "%s\n\t%s\n", filepath.Base(path), strings.Join(less, "\n\t"))
		} else {
			fmt.Fprintf(&table, "%s: held\n", filepath.Base(path))
			held++
		}
		if err != nil {
			continue
		}
		var texts []string
		worst := time.Duration(0)
		for range storeWalks {
			text, took := tokenWalk(t, g, rng)
			texts, worst = append(texts, text), max(worst, took)
		}
		slow = append(slow, fmt.Sprintf("%9v %s", worst, filepath.Base(path)))
		if len(less) > 0 {
			continue // then a text need not be valid
		}
		var small bytes.Buffer
		if err := json.Compact(&small, raw); err != nil {
			silent++ // JSON with comments
			continue
		}
		line := hosttest.Must(json.Marshal(map[string]any{"schema": json.RawMessage(small.Bytes()),
			"texts": texts}))(t)
		in.Write(append(line, '\n'))
	}
	slices.SortFunc(slow, func(a, b string) int {
		return cmp.Compare(duration(b), duration(a))
	})
	t.Logf("%d of %d are held in full, %d not judged; the slowest tokens: %q", held, len(paths), silent,
		slow[:8])
	hosttest.Check(t, os.WriteFile("testdata/schemastore.txt", table.Bytes(), 0o644))
	list := filepath.Join(t.TempDir(), "texts.jsonl")
	hosttest.Check(t, os.WriteFile(list, in.Bytes(), 0o600))
	out, err := exec.Command(python, "testdata/verify_walks.py", list).CombinedOutput()
	t.Logf("%s", out)
	hosttest.Check(t, err)
}

func duration(line string) time.Duration {
	d, _ := time.ParseDuration(strings.Fields(line)[0])
	return d
}

// tokenWalk writes a text token by token, as a sequence would: some allowed tokens, then the
// shortest path to the end. took is the cost of the slowest token.
func tokenWalk(t *testing.T, g *automaton.Grammar, rng *rand.Rand) (text string,
	took time.Duration) {
	t.Helper()
	m, tok := g.Matcher(), token.Get()
	for n := 0; n < 20*storeTokens; n++ {
		began := hosttest.ThreadTime()
		mask := m.Mask(token.Return)
		took = max(took, hosttest.ThreadTime()-began)
		if m.Done() && (n > storeTokens || rng.IntN(4) == 0) {
			return text, took
		}
		id := int32(-1)
		if n > storeTokens {
			if end := m.Shortest(); len(end) > 0 {
				id = tok.EncodeBytes(nil, end)[0]
			}
		}
		for try := 0; id < 0; try++ { // mostly what leads on
			id = randomID(mask, rng)
			const structure = `"{}[]:,`
			if try < 12 && (id == token.Return ||
				!bytes.ContainsAny(tok.TokenBytes(id), structure)) {
				id = -1
			}
		}
		if id == token.Return {
			return text, took
		}
		if !automaton.Allows(mask, id) {
			t.Fatalf("%q: the shortest way begins with %q, which is not allowed", text,
				tok.TokenBytes(id))
		}
		began = hosttest.ThreadTime()
		if !m.Accept(id) {
			t.Fatalf("%q: %q is allowed and refused", text, tok.TokenBytes(id))
		}
		took = max(took, hosttest.ThreadTime()-began)
		text += string(tok.TokenBytes(id))
	}
	t.Errorf("a text does not end: %.200q", text)
	return text, took
}

func randomID(mask []uint64, rng *rand.Rand) int32 {
	left := rng.IntN(ones(mask))
	for i, w := range mask {
		if c := bits.OnesCount64(w); left >= c {
			left -= c
			continue
		}
		for ; left > 0; left-- {
			w &= w - 1
		}
		return int32(i*64 + bits.TrailingZeros64(w))
	}
	return -1
}

func ones(mask []uint64) (n int) {
	for _, w := range mask {
		n += bits.OnesCount64(w)
	}
	return n
}
