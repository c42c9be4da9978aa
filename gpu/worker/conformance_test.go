//go:build linux

package worker

import (
	"slices"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// The suite that every Backend passes, through a worker: with the CPU inside all of it, with a GPU
// of the fake driver's a part, since its own tests hold the rest.

const testdata = "../../testdata/model/"

// TestPrograms: whole models, their weights opened by the worker.
func TestPrograms(t *testing.T) {
	quick := []string{"bad steps are refused and harm nothing", "a cancelled step does not run",
		"a closed engine says so", "memory is as planned"}
	for _, kind := range []string{"cpu", "CUDA"} {
		dev := opened(t, kind, Options{})
		for _, check := range enginetest.Programs(enginetest.Config{Backend: dev, Dir: testdata +
			"T2"}) {
			if kind != "cpu" && !slices.Contains(quick, check.Name) {
				continue
			}
			t.Run(kind+"/"+check.Name, func(t *testing.T) {
				hosttest.Check(t, check.Run(t.Context()))
			})
		}
	}
}

// TestProgramsFP8: with pages of 8 bits, whose twins travel with a step.
func TestProgramsFP8(t *testing.T) {
	for _, kind := range []string{"cpu", "CUDA"} {
		dev := opened(t, kind, Options{})
		if !dev.Caps().FP8KV {
			t.Fatalf("%s has no pages of 8 bits", kind)
		}
		for _, check := range enginetest.Programs(enginetest.Config{Backend: dev, Dir: testdata +
			"T2", Options: engine.Settings{KVCacheDtype: engine.KVFP8}}) {
			if check.Name != "bad steps are refused and harm nothing" &&
				check.Name != "memory is as planned" {
				continue
			}
			t.Run(kind+"/"+check.Name, func(t *testing.T) {
				hosttest.Check(t, check.Run(t.Context()))
			})
		}
	}
}
