// The questions: read from the user's file, asked in our words, and their answers read out of a
// reply. None are shipped.

package eval

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type Question struct {
	ID      string
	Text    string
	Choices []string // the right one first; none: the answer is an integer
	Answer  string   // of a question without choices
}

// Kinds of files of questions.
const (
	GPQA   = "gpqa"
	AIME25 = "aime25"
)

// ReadQuestions reads GPQA's CSV (Question, Correct Answer, Incorrect Answer 1 to 3) or AIME's JSON
// lines (question or problem, and answer); either may be in the other's form.
func ReadQuestions(kind string, text []byte) ([]Question, error) {
	rows, err := readRows(text)
	if err != nil {
		return nil, err
	}
	var list []Question
	for i, row := range rows {
		q, err := question(kind, row)
		if err != nil {
			return nil, fmt.Errorf("question %d: %w", i+1, err)
		}
		q.ID = strconv.Itoa(i + 1)
		list = append(list, q)
	}
	if len(list) == 0 {
		return nil, errors.New("there are no questions in it")
	}
	return list, nil
}

func question(kind string, row map[string]string) (Question, error) {
	first := func(names ...string) string {
		for _, n := range names {
			if v := strings.TrimSpace(row[n]); v != "" {
				return v
			}
		}
		return ""
	}
	q := Question{Text: first("question", "problem"), Answer: first("answer", "correct answer")}
	if q.Text == "" {
		return q, errors.New("it has no column question or problem")
	}
	if kind != GPQA {
		digits, _, _ := strings.Cut(q.Answer, "^") // one of AIME's is 336^\circ
		n, err := strconv.Atoi(digits)
		if err != nil {
			return q, fmt.Errorf("its answer must be an integer, not %q", q.Answer)
		}
		q.Answer = strconv.Itoa(n)
		return q, nil
	}
	q.Choices = []string{first("correct answer"), first("incorrect answer 1"),
		first("incorrect answer 2"), first("incorrect answer 3")}
	if slices.Contains(q.Choices, "") {
		return q, errors.New("it needs the columns Correct Answer and Incorrect Answer 1 to 3")
	}
	return q, nil
}

// readRows reads CSV with a header, a JSON list, or JSON lines; names are in small letters.
func readRows(text []byte) (rows []map[string]string, err error) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		return readJSON(text)
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = -1
	lines, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("it is neither CSV nor JSON: %w", err)
	}
	for _, line := range lines[min(1, len(lines)):] {
		row := map[string]string{}
		for i, v := range line[:min(len(line), len(lines[0]))] {
			row[strings.ToLower(strings.TrimSpace(lines[0][i]))] = v
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func readJSON(text []byte) (rows []map[string]string, err error) {
	d, list := json.NewDecoder(bytes.NewReader(text)), text[0] == '['
	if list {
		_, err = d.Token()
	}
	for err == nil && d.More() {
		var m map[string]any
		err = d.Decode(&m)
		row := map[string]string{}
		for name, v := range m {
			row[strings.ToLower(name)] = strings.TrimSuffix(fmt.Sprint(v), ".0")
		}
		rows = append(rows, row)
	}
	if err == nil && list {
		_, err = d.Token() // its end
	}
	if err != nil {
		return nil, fmt.Errorf("it is not JSON objects: %w", err)
	}
	return rows, nil
}

const letters = "ABCD"

// ask is the question of attempt n, and its right answer: seed, question and attempt decide the
// order of the choices.
func (q *Question) ask(seed uint64, n int) (text, expected string) {
	if len(q.Choices) == 0 {
		return q.Text + "\n\nThink it through. The answer is an integer; end with it alone " +
			"inside \\boxed{}.", q.Answer
	}
	id, _ := strconv.ParseUint(q.ID, 10, 64) // our own
	order := rand.New(rand.NewPCG(seed, id<<20|uint64(n))).Perm(len(q.Choices))
	var b strings.Builder
	b.WriteString(q.Text + "\n")
	for i, choice := range order {
		fmt.Fprintf(&b, "\n%c) %s", letters[i], q.Choices[choice])
		if choice == 0 {
			expected = letters[i : i+1]
		}
	}
	b.WriteString("\n\nWhich is right? End with a line that says Answer: and the letter A, B, C " +
		"or D.")
	return b.String(), expected
}

// The ways in which a reply gives its letter, the clearest first; of each the last one counts.
var letterForms = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\banswer\b[^A-Za-z0-9\n]{0,12}(?:is\b|option\b|choice\b|[:=])[^A-Za-z0-9\n]{0,12}(?:option |choice )?[\\({*\[]*(?:boxed\{|text\{|\\)*([A-D])\b`),
	regexp.MustCompile(`\\boxed\{[^A-Za-z}]*(?:\\text\{|\\mathrm\{)?\(?([A-D])\b`),
	regexp.MustCompile(`(?i)\b(?:option|choice)\s*[\\({*\[]*([A-D])\b`),
	regexp.MustCompile(`(?m)^[^A-Za-z0-9\n]*([A-D])[^A-Za-z0-9\n]*(?:[).:].*)?$`),
	regexp.MustCompile(`\*\*\(?([A-D])\b`),
}

var (
	boxed   = regexp.MustCompile(`\\(?:boxed|fbox)\{((?:[^{}]|\{[^{}]*\})*)\}`)
	integer = regexp.MustCompile(`-?\d[\d,]*`)
)

// read finds the answer in a reply; empty: none.
func (q *Question) read(reply string) string {
	if len(q.Choices) > 0 {
		for _, form := range letterForms {
			if all := form.FindAllStringSubmatch(reply, -1); all != nil {
				return strings.ToUpper(all[len(all)-1][1])
			}
		}
		return ""
	}
	if all := boxed.FindAllStringSubmatch(reply, -1); all != nil {
		reply = all[len(all)-1][1]
	}
	all := integer.FindAllString(reply, -1)
	if all == nil {
		return ""
	}
	n, err := strconv.Atoi(strings.ReplaceAll(all[len(all)-1], ",", ""))
	if err != nil {
		return ""
	}
	return strconv.Itoa(n)
}
