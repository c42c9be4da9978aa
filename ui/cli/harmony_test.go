package cli

// The goldens again, through the verb: what a script gets is what the library gives.

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
)

// harmonyRun runs a verb over input and returns its exit code and its answers.
func harmonyRun(t *testing.T, verb string, input []byte) (int, []map[string]json.RawMessage) {
	t.Helper()
	var out, errOut bytes.Buffer
	code := Run(context.Background(), []string{"ossrun", "harmony", verb},
		Terminal{In: bytes.NewReader(input), Out: &out, Err: &errOut})
	var answers []map[string]json.RawMessage
	lines := bufio.NewScanner(&out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var a map[string]json.RawMessage
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatalf("%s: %v in %.200s", verb, err, lines.Text())
		}
		answers = append(answers, a)
	}
	return code, answers
}

func harmonyGolden(t *testing.T, file string) (raw []byte, cases []map[string]json.RawMessage) {
	t.Helper()
	f, err := os.Open("../../testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = io.ReadAll(zr); err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		var c map[string]json.RawMessage
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return raw, cases
}

// harmonyAsk asks for one answer to each of the questions.
func harmonyAsk(t *testing.T, verb string, questions []any) []map[string]json.RawMessage {
	t.Helper()
	var input bytes.Buffer
	for _, q := range questions {
		if err := json.NewEncoder(&input).Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	code, answers := harmonyRun(t, verb, input.Bytes())
	if code != 0 || len(answers) != len(questions) {
		t.Fatalf("%s: exit code %d, %d answers to %d questions", verb, code, len(answers),
			len(questions))
	}
	return answers
}

func sameJSON(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

type fields map[string]any

func TestHarmonyEncodeGolden(t *testing.T) {
	raw, cases := harmonyGolden(t, "tokenizer/encode.jsonl.gz")
	code, answers := harmonyRun(t, "encode", raw) // the cases as they are: text, or unit and count
	if code != 0 || len(answers) != len(cases) {
		t.Fatalf("exit code %d, %d answers to %d cases", code, len(answers), len(cases))
	}
	var all, some []any
	var wantAll, wantSome []json.RawMessage
	for i, c := range cases {
		if c["ids"] == nil {
			var ids []uint32
			if err := json.Unmarshal(answers[i]["ids"], &ids); err != nil {
				t.Fatal(err)
			}
			h := sha256.New()
			binary.Write(h, binary.LittleEndian, ids)
			if want := strings.Trim(string(c["ids_sha256"]),
				`"`); hex.EncodeToString(h.Sum(nil)) != want {
				t.Errorf("%s: hash of the ids is not %s", c["id"], want)
			}
		} else if !sameJSON(t, answers[i]["ids"], c["ids"]) {
			t.Errorf("%s: %s, want %s", c["id"], answers[i]["ids"], c["ids"])
		}
		if c["ids_special"] != nil {
			all = append(all, fields{"text": c["text"], "special": true})
			some = append(some,
				fields{"text": c["text"], "special": []string{"<|end|>", "<|message|>"}})
			wantAll, wantSome = append(wantAll, c["ids_special"]), append(wantSome, c["ids_subset"])
		}
	}
	for i, a := range harmonyAsk(t, "encode", all) {
		if !sameJSON(t, a["ids"], wantAll[i]) {
			t.Errorf("special %v: %s, want %s", all[i], a["ids"], wantAll[i])
		}
	}
	for i, a := range harmonyAsk(t, "encode", some) {
		if !sameJSON(t, a["ids"], wantSome[i]) {
			t.Errorf("subset %v: %s, want %s", some[i], a["ids"], wantSome[i])
		}
	}
}

func TestHarmonyBytesGolden(t *testing.T) {
	_, cases := harmonyGolden(t, "tokenizer/encode_bytes.jsonl.gz")
	var exact, replaced, back []any
	for _, c := range cases {
		exact = append(exact, fields{"bytes_b64": c["bytes_b64"]})
		replaced = append(replaced, fields{"text": c["text_replaced"]})
		back = append(back, fields{"ids": c["ids_bytes"]})
	}
	exactIDs, replacedIDs, bytesBack := harmonyAsk(t, "encode", exact), harmonyAsk(t, "encode",
		replaced), harmonyAsk(t, "decode", back)
	for i, c := range cases {
		if !sameJSON(t, exactIDs[i]["ids"], c["ids_bytes"]) || !sameJSON(t, replacedIDs[i]["ids"],
			c["ids_replaced"]) ||
			!sameJSON(t, bytesBack[i]["bytes_b64"], c["bytes_b64"]) ||
			!sameJSON(t, bytesBack[i]["text"], c["text_replaced"]) {
			t.Errorf("%s: exact %s, replaced %s, back %s", c["id"], exactIDs[i], replacedIDs[i],
				bytesBack[i])
		}
	}
}

func TestHarmonyDecodeGolden(t *testing.T) {
	raw, cases := harmonyGolden(t, "tokenizer/decode.jsonl.gz")
	code, answers := harmonyRun(t, "decode", raw)
	if code != 0 || len(answers) != len(cases) {
		t.Fatalf("exit code %d, %d answers to %d cases", code, len(answers), len(cases))
	}
	for i, c := range cases {
		if !sameJSON(t, answers[i]["bytes_b64"], c["bytes_b64"]) ||
			!sameJSON(t, answers[i]["text"], c["text_replaced"]) {
			t.Errorf("%s: %s", c["id"], answers[i])
		}
	}
}

func TestHarmonyRenderGolden(t *testing.T) {
	_, cases := harmonyGolden(t, "harmony/render.jsonl.gz")
	var questions []any
	var want []map[string]json.RawMessage
	var ids []string
	for _, c := range cases {
		var runs []map[string]json.RawMessage
		if err := json.Unmarshal(c["runs"], &runs); err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			q := fields{"messages": c["messages"], "fn": r["fn"],
				"auto_drop_analysis": r["auto_drop_analysis"]}
			if c["next_turn_role"] != nil {
				q["next_turn_role"] = c["next_turn_role"]
			}
			questions, want, ids = append(questions, q), append(want, r),
				append(ids, string(c["id"]))
		}
	}
	for i, a := range harmonyAsk(t, "render", questions) {
		w := want[i]
		if (a["error"] != nil) != (w["error"] != nil) || !sameJSON(t, a["ids"], w["ids"]) ||
			!sameJSON(t, a["text"], w["text"]) {
			t.Errorf("%s: %s, want %s", ids[i], a, w)
		}
	}
}

// The verb refuses and reads the same as OpenAI's library, with the exceptions listed in the tests
// of package harmony; not strict, it refuses nothing and names the faults.
func TestHarmonyParseGolden(t *testing.T) {
	raw, cases := harmonyGolden(t, "harmony/parse.jsonl.gz")
	code, answers := harmonyRun(t, "parse", raw) // the cases as they are
	if code != 0 || len(answers) != len(cases) {
		t.Fatalf("exit code %d, %d answers to %d cases", code, len(answers), len(cases))
	}
	var questions []any
	for _, strict := range []bool{true, false} {
		for _, c := range cases {
			questions = append(questions, fields{"ids": c["ids"], "role": c["role"],
				"strict": strict})
		}
	}
	both := harmonyAsk(t, "parse", questions)
	refused, stricter, otherwise := 0, 0, 0
	for i, c := range cases {
		got, loose := answers[i], both[len(cases)+i]
		var want map[string]json.RawMessage
		if err := json.Unmarshal(c["strict"], &want); err != nil {
			t.Fatal(err)
		}
		faulty := !sameJSON(t, loose["faults"], json.RawMessage("{}"))
		switch {
		case !reflect.DeepEqual(got, both[i]) || loose["error"] != nil || loose["messages"] == nil:
			t.Errorf("%s: %s, %s, not strict %s", c["id"], got, both[i], loose)
		case want["error"] != nil && got["error"] != nil:
			refused++
		case want["error"] == nil && got["error"] != nil && faulty:
			stricter++
		case want["error"] != nil || got["error"] != nil || faulty:
			t.Errorf("%s: %s, not strict %s, want %s", c["id"], got, loose, want)
		case !sameJSON(t, got["messages"], loose["messages"]):
			t.Errorf("%s: %s, not strict %s", c["id"], got, loose)
		case !sameJSON(t, got["messages"], want["messages"]):
			otherwise++
		}
	}
	if refused != 82 || stricter != 33 || otherwise != 3 || len(cases) != 185 {
		t.Errorf("%d of %d are refused, %d here alone, %d are read otherwise", refused, len(cases),
			stricter, otherwise)
	}
}

func TestHarmonyExactOutput(t *testing.T) {
	for _, c := range []struct {
		verb, in, out string
		code          int
	}{
		{"encode", `{"text":"Hello, world!"}` + "\n", `{"ids":[13225,11,2375,0]}` + "\n", 0},
		{"encode", `{"text":""}`, `{"ids":[]}` + "\n", 0},
		{"encode", `{"text":"<|end|>","special":["<|end|>"]}`, `{"ids":[200007]}` + "\n", 0},
		{"encode", `{"bytes_b64":"/w=="}` + "\r\n", `{"ids":[187]}` + "\n", 0},
		{"decode", `{"ids":[13225,200006,187]}`, `{"text":"Hello<|start|>` + "\ufffd" +
			`","bytes_b64":"SGVsbG88fHN0YXJ0fD7/"}` + "\n", 0},
		{"decode", `{"ids":[201088]}`, `{"error":"line 1: id 201088 is outside the vocabulary"}` +
			"\n", 1},
		{"render", `{"messages":[]}`, `{"ids":[200006,173781],"text":"<|start|>assistant"}` + "\n",
			0},
		{"parse", `{"ids":[200005,17196,200008,3575,200002],"role":"assistant"}`,
			`{"messages":[{"role":"assistant","content":"You","channel":"final"}]}` + "\n", 0},
		{"parse", `{"ids":[]}`, `{"messages":[]}` + "\n", 0},
		{"parse", `{"ids":[1]}`, `{"error":"token 0 is not legal here: start"}` + "\n",
			0},
		{"encode", "", "", 0},
	} {
		var out, errOut bytes.Buffer
		code := Run(context.Background(), []string{"ossrun", "harmony", c.verb},
			Terminal{In: strings.NewReader(c.in), Out: &out, Err: &errOut})
		if out.String() != c.out || code != c.code {
			t.Errorf("%s %s: code %d, %q, want code %d, %q (%s)", c.verb, c.in, code, out.String(),
				c.code, c.out, errOut.String())
		}
	}
}

func TestHarmonyBadLinesGoOn(t *testing.T) {
	good := map[string]string{"encode": `{"text":"a"}`, "decode": `{"ids":[64]}`,
		"render": `{"messages":[]}`, "parse": `{"ids":[]}`}
	for verb, line := range good {
		for _, bad := range []string{``, `x`, `{}`, `[]`,
			`{"text":5,"ids":"x","messages":7,"fn":1}`,
			`{"text":"a","special":["<|nobody|>"],"ids":[-1],"messages":[],"fn":"none"}`} {
			code, answers := harmonyRun(t, verb, []byte(line+"\n"+bad+"\n"+line+"\n"))
			if code != 1 || len(answers) != 3 {
				t.Fatalf("%s %q: exit code %d, %d answers", verb, bad, code, len(answers))
			}
			if !strings.HasPrefix(string(answers[1]["error"]), `"line 2: `) ||
				answers[0]["error"] != nil || !reflect.DeepEqual(answers[0], answers[2]) {
				t.Errorf("%s %q: %s", verb, bad, answers)
			}
		}
	}
}

func TestHarmonyLongLine(t *testing.T) {
	text := strings.Repeat("Ein langer Satz ohne Ende, ", 200_000)
	answers := harmonyAsk(t, "encode", []any{fields{"text": text}})
	back := harmonyAsk(t, "decode", []any{fields{"ids": answers[0]["ids"]}})
	var got string
	if err := json.Unmarshal(back[0]["text"], &got); err != nil || got != text {
		t.Fatalf("%d bytes of %d came back, %v", len(got), len(text), err)
	}
}

// An answer comes before the next line is asked for, and an interrupt ends the verb while it waits.
func TestHarmonyAnswersAtOnce(t *testing.T) {
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int)
	go func() {
		code <- Run(ctx, []string{"ossrun", "harmony", "encode"},
			Terminal{In: inRead, Out: outWrite, Err: io.Discard})
	}()
	answers := bufio.NewScanner(outRead)
	for range 3 {
		io.WriteString(inWrite, "{\"text\":\"Hello, world!\"}\n")
		if !answers.Scan() || answers.Text() != `{"ids":[13225,11,2375,0]}` {
			t.Fatalf("got %q, %v", answers.Text(), answers.Err())
		}
	}
	cancel()
	if c := <-code; c != exitInterrupted {
		t.Errorf("exit code %d", c)
	}
	inWrite.Close()
}

func TestHarmonyUsage(t *testing.T) {
	for _, args := range [][]string{{"harmony"}, {"harmony", "encod"},
		{"harmony", "encode", "a", "b"}, {"harmony", "encode", "--fast"}} {
		if code, _, _ := runHere(t.Context(), args...); code != exitUsage {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
	code, _, _ := runHere(t.Context(), "harmony", "encode", t.TempDir()+"/none")
	if code != exitFailure {
		t.Errorf("no such file: exit code %d", code)
	}
}
