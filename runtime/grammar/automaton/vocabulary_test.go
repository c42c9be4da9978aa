package automaton

import (
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// The wait of the first grammar of a process, except the vocabulary's own table.
func BenchmarkVocabulary(b *testing.B) {
	token.Get()
	begin := hosttest.ProcessTime()
	for b.Loop() {
		newVocabulary()
	}
	b.ReportMetric(float64((hosttest.ProcessTime()-begin).Milliseconds())/float64(b.N), "cpu-ms/op")
}
