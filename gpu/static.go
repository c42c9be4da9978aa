//go:build static

package gpu

// Static: this executable cannot load a GPU driver into itself (tag of assets/release/go).
const Static = true

// NoWorker is the message of an executable that can use no GPU.
const NoWorker = "this static executable cannot load GPU drivers and carries no worker that " +
	"could: the GPU needs the " +
	"dynamic build (go build .)"
