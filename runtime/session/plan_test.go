package session

import (
	"strings"
	"testing"
)

func input20b(free int64) PlanInput {
	return PlanInput{Free: free, Weights: 13_761_264_768, Scratch: 200 << 20, PageBytes: 32 * 12 * 2 * 512 * 2, PageTokens: 32,
		MaxPosition: 131072, Window: 128, ChunkTokens: 512, MaxSeqs: 64}
}

// The plan must hold what it promises at every amount of free memory: never more than is free, and always one
// sequence of the stated length.
func TestPlanNeverOverruns(t *testing.T) {
	fitted := 0
	for free := int64(1 << 30); free < 64<<30; free += 173 << 20 {
		for _, asked := range []int{0, 4096, 131072} {
			in := input20b(free)
			in.MaxModelLen = asked
			p, err := MakePlan(in)
			if err != nil {
				continue
			}
			fitted++
			if p.Total > free {
				t.Fatalf("free %d: planned %d", free, p.Total)
			}
			if in.pagesFor(p.Context) > p.Pages {
				t.Fatalf("free %d: context %d needs %d pages, the pool has %d", free, p.Context, in.pagesFor(p.Context), p.Pages)
			}
			if asked > 0 && p.Context != asked {
				t.Fatalf("free %d: asked %d, got %d", free, asked, p.Context)
			}
		}
	}
	if fitted < 100 {
		t.Fatalf("only %d plans fitted", fitted)
	}
}

func TestPlanRefusesWithNumbers(t *testing.T) {
	_, err := MakePlan(input20b(8 << 30))
	if err == nil || !strings.Contains(err.Error(), "8.0 GiB free") || !strings.Contains(err.Error(), "12.8 GiB") {
		t.Fatalf("got %v", err)
	}
}

func TestPlanUsesAllItCan(t *testing.T) {
	p, err := MakePlan(input20b(40 << 30))
	if err != nil || p.Context != 131072 {
		t.Fatalf("%+v %v", p, err)
	}
	tight, err := MakePlan(input20b(17 << 30))
	if err != nil || tight.Context >= 131072 || tight.Context < 8192 {
		t.Fatalf("%+v %v", tight, err)
	}
}
