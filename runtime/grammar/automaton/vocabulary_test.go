package automaton

import (
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// What the first grammar of a process waits for, the vocabulary's own table aside.
func BenchmarkVocabulary(b *testing.B) {
	token.Get()
	begin := hosttest.ProcessTime()
	for b.Loop() {
		newVocabulary()
	}
	b.ReportMetric(float64((hosttest.ProcessTime()-begin).Milliseconds())/float64(b.N), "cpu-ms/op")
}
