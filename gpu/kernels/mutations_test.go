package kernels

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Every mutation of kerneltest/mutations.txt still has its place in the sources, names cases that
// exist, and there are enough of them. mutate.sh runs them; this only keeps the list true when the
// sources change.
func TestMutationsHaveTheirPlaces(t *testing.T) {
	text := hosttest.Must(os.ReadFile("kerneltest/mutations.txt"))(t)
	files := hosttest.Must(filepath.Glob("kerneltest/*_test.cpp"))(t)
	var cases []byte
	for _, file := range files {
		data := hosttest.Must(os.ReadFile(file))(t)
		cases = append(cases, data...)
	}
	count := 0
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		count++
		fields := strings.Split(strings.ReplaceAll(line, `\|`, "\x01"), "|")
		if len(fields) != 6 {
			t.Errorf("line %d has %d fields", i+1, len(fields))
			continue
		}
		for k := range fields {
			fields[k] = strings.NewReplacer("\x01", "|", `\n`, "\n").Replace(fields[k])
		}
		source, err := os.ReadFile(fields[0])
		if err != nil || !bytes.Contains(source, []byte(fields[1])) {
			t.Errorf("line %d: %q does not stand in %s (%v)", i+1, fields[1], fields[0], err)
		}
		if fields[1] == fields[2] {
			t.Errorf("line %d changes nothing", i+1)
		}
		for word := range strings.FieldsSeq(fields[5]) {
			if !bytes.Contains(cases, []byte("TEST("+word)) {
				t.Errorf("line %d: no case begins with %s", i+1, word)
			}
		}
	}
	if count < 60 {
		t.Errorf("%d mutations", count)
	}
}
