//go:build static

package gpu

// Static: this executable has no dynamic loader, so it cannot load a GPU driver into itself
// (assets/release/go sets the tag).
const Static = true

// NoWorker is the message of an executable that can use no GPU.
const NoWorker = "this static executable cannot load GPU drivers and carries no worker that " +
	"could: the GPU needs the " +
	"dynamic build (go build .)"
