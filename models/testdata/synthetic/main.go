// Synthetic writes a checkpoint in the Hugging Face layout with random weights of a released
// model's shape, for measuring loading, memory and speed without real weights.
//
//	go run ./models/testdata/synthetic -model 20b -layers 24 FOLDER
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/modeltest"
)

func main() {
	model := flag.String("model", "20b", "whose shape it has")
	layers := flag.Int("layers", 0, "fewer layers than that; 0: all")
	files := flag.Int("files", 3, "how many files hold the weights")
	seed := flag.Uint64("seed", 1, "the same seed writes the same bytes")
	flag.Parse()
	e, ok := models.Lookup(*model)
	if !ok || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if *layers > 0 {
		e.Spec.Layers = *layers
	}
	if err := modeltest.WriteSynthetic(flag.Arg(0), e.Spec, *seed, *files); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
