package cpu_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/cpu/machine"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
)

// TestPressure measures decoding where memory has room for a part of the weights only: all other
// memory is locked away. OSSRUN_PRESSURE names the folder of the weights, random ones of twelve
// layers of the 20b, which are made if they are not there. The experts of random weights are chosen
// evenly, so a real model finds more of them in memory.
func TestPressure(t *testing.T) {
	folder := os.Getenv("OSSRUN_PRESSURE")
	if folder == "" {
		t.Skip("OSSRUN_PRESSURE names no folder")
	}
	spec := models.Spec20B()
	spec.Layers = 12
	if _, err := os.Stat(filepath.Join(folder, "config.json")); err != nil {
		if err := modeltest.WriteSynthetic(folder, spec, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	ckpt, err := checkpoint.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer ckpt.Close()
	const besides = 1 << 30 // of the engine and this process
	for _, percent := range []int64{110, 80, 60, 40} {
		locked := available(t) - ckpt.Spec.WeightBytes()*percent/100 - besides
		if locked < 0 {
			t.Fatalf("%d MiB are missing", -locked>>20)
		}
		free := lockAway(t, locked)
		for range 2 {
			for _, onDisk := range []bool{false, true} {
				rate, read := decodeRate(t, ckpt, onDisk)
				t.Logf("room for %3d %% of %.1f GB, asked for: %-5v %6.2f tok/s, %4.0f MB read a "+
					"token", percent, float64(ckpt.Spec.WeightBytes())/1e9, onDisk, rate, read/1e6)
			}
		}
		free()
	}
}

// decodeRate is tokens a second of one sequence, and the bytes of the disk that each took.
func decodeRate(t *testing.T, ckpt *checkpoint.Checkpoint, onDisk bool) (rate, read float64) {
	t.Helper()
	eng, err := engine.On(open(t, 0)).Load(t.Context(), ckpt, engine.Settings{OnDisk: onDisk,
		Compute: engine.Int8, MaxNumBatchedTokens: 1, Pages: 64}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	pages := enginetest.NewPages(64)
	q := pages.NewSequence(eng.Spec())
	defer q.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, eng.Spec().Vocab)
	const first, steps = 15, 30
	var began time.Time
	var before int64
	for i := range first + steps {
		if i == first {
			began, before = time.Now(), bytesRead(t)
		}
		part, err := q.Extend(1)
		if err != nil {
			t.Fatal(err)
		}
		b := engine.Batch{Tokens: []int32{rng.Int32N(int32(eng.Spec().Vocab))},
			Seqs: []engine.SeqRows{part}, LogitRows: []int32{0}}
		if err := eng.Step(t.Context(), &b, logits); err != nil {
			t.Fatal(err)
		}
	}
	return steps / time.Since(began).Seconds(), float64(bytesRead(t)-before) / steps
}

// lockAway takes memory that the system cannot take back, until free is called.
func lockAway(t *testing.T, bytes int64) (free func()) {
	t.Helper()
	data, err := machine.Map(int(bytes))
	if err == nil {
		err = unix.Mlock(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := machine.Unmap(data); err != nil {
			t.Fatal(err)
		}
	}
}

// available is the memory that is free or holds copies of files, in bytes.
func available(t *testing.T) int64 {
	return numberIn(t, "/proc/meminfo", `MemAvailable: +(\d+) kB`) << 10
}

func bytesRead(t *testing.T) int64 { return numberIn(t, "/proc/self/io", `read_bytes: (\d+)`) }

func numberIn(t *testing.T, path, pattern string) int64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		t.Fatal(fmt.Errorf("%s has no %s", path, pattern))
	}
	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
