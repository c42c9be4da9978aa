// A model that one GPU has no room for: over several, and where they have none either, with experts computed by the CPU (gpu/spread).

package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/gpu/placement"
	"github.com/ossrun/ossrun/gpu/spread"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// cpuExpertsFlag is how many layers' experts go to the CPU.
func cpuExpertsFlag() cli.Flag {
	return &cli.StringFlag{Name: "cpu-experts", Category: groupModel, Value: "auto", Usage: "leave the experts of the last `N` layers to the CPU; auto: of as few as make the model fit on the GPUs"}
}

// cpuExperts reads the flag; 0 is auto.
func cpuExperts(c *cli.Context) (int, error) {
	text := c.String("cpu-experts")
	if text == "" || text == "auto" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fail(exitUsage, "--cpu-experts must be auto or a number of layers, not %q", text)
	}
	return n, nil
}

// placed places a model over the GPUs that may be used and the CPU, in this process or in a worker. first, which was opened to look, is closed. The plan
// is told, and which kernels are wrong on a card.
func placed(c *cli.Context, first engine.Device, spec models.Spec, experts int, k knobs) (engine.Device, error) {
	list, err := gpuList(c)
	if err = errors.Join(err, first.Close()); err != nil {
		return nil, err
	}
	r := spread.Request{Spec: spec, Options: k.placement(spec, experts), Threads: c.Int("threads")}
	var dev engine.Device
	var said []string
	if inWorker(c) {
		dev, said, err = placeIsolated(c, list, r)
	} else {
		dev, said, err = spread.Open(c.Context, list, r, gpuRecords)
	}
	if err != nil {
		return nil, err
	}
	for _, line := range said {
		fmt.Fprintf(c.App.ErrWriter, "ossrun: %s\n", line)
	}
	return dev, nil
}

// placement is what a plan over several devices depends on: the settings that the model is then loaded with.
func (k *knobs) placement(spec models.Spec, experts int) placement.Options {
	kv := k.kvType
	if kv == "auto" {
		kv = "bf16"
		if k.compute == engine.Exact {
			kv = "f32"
		}
	}
	return placement.Options{Context: min(k.maxModelLen, spec.MaxPosition), Rows: k.maxRows, Logits: k.maxSeqs, Compute: k.compute, KV: kv, Dense: k.dense,
		Plain: k.deterministic, Utilization: k.utilization, CPUExperts: experts}
}
