// Package kernels has the GPU's arithmetic: CUDA sources, their emulation on the host, the
// artefacts built from them, and the launches of which a step is made.
//
// The sources are one dialect (gpu.h) for NVIDIA, AMD and the host. kernels.md lists every kernel
// with its parameters; it is written from the sources. host.sh builds them for the host, where
// emulator/ runs them thread by thread, for tests and the fake driver.
//
// What must stay true:
//   - A Launch's arguments are the kernel's parameters, in order and in size. A test reads the
//     sources and checks this.
//   - A kernel reads the live counts of a step (rows, logit rows) from device memory, so that one
//     captured graph serves all steps of a bucket. Grids are sized by the bucket.
//   - The reference kernels take any shape that engine.Program allows and define each operation;
//     every other kernel is compared with them.
package kernels

//go:generate go test -run TestKernelTableIsNotStale -update .
//go:generate go run ./generate
